// Adds Proofstone's reporter to `node --test`, whatever reporters the command names itself.
//
// Loaded through NODE_OPTIONS=--require=<this file>. Reporter options in NODE_OPTIONS would be simpler, but Node
// refuses to start when a command has its own `--test-reporter`, or when it is too old to know the option. So: the
// process that is about to be the test runner starts itself again with the reporter added, and passes its status on.
// Every other process goes on undisturbed.
'use strict';

const REPORTER = require('node:path').join(__dirname, 'proofstone_node_reporter.mjs');

function count(words, option) {
  return words.filter((word) => word === option || word.startsWith(option + '=')).length;
}

// Node wants as many destinations as reporters, unless there is a single reporter and no destination.
function reporterOptions(words) {
  const named = count(words, '--test-reporter');
  const destinations = count(words, '--test-reporter-destination');
  const options = [];
  if (named === 0) {
    const plain = !process.stdout.isTTY && Number(process.versions.node.split('.')[0]) < 23;
    options.push(`--test-reporter=${plain ? 'tap' : 'spec'}`); // what Node itself would have chosen
  }
  if (named <= 1 && destinations === 0) options.push('--test-reporter-destination=stdout');
  options.push(`--test-reporter=${REPORTER}`, '--test-reporter-destination=stderr'); // it prints nothing
  return options;
}

function runner() {
  return process.env.PROOFSTONE_REPORT
    && !process.env.NODE_TEST_CONTEXT
    && process.execArgv.includes('--test')
    && !process.execArgv.some((word) => word.endsWith('proofstone_node_reporter.mjs')) // this is the second start
    && process.allowedNodeEnvironmentFlags.has('--test-reporter');
}

if (runner()) {
  const others = (process.env.NODE_OPTIONS || '').split(' ').filter((word) => word && !word.endsWith('/proofstone_node.cjs'));
  const env = { ...process.env, NODE_OPTIONS: others.join(' ') };
  if (others.length === 0) delete env.NODE_OPTIONS;
  const argv = [...process.execArgv, ...reporterOptions([...others, ...process.execArgv]), ...process.argv.slice(1)];
  const done = require('node:child_process').spawnSync(process.execPath, argv, { env, stdio: 'inherit' });
  if (done.error) throw done.error;
  if (done.signal) process.kill(process.pid, done.signal);
  process.exit(done.status);
}
