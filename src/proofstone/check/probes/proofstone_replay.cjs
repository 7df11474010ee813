// Repeats recorded calls in a process that knows nothing of tests, and writes down the answers.
//
//     node proofstone_replay.cjs
//
// The calls stand in `observe.json` of the report directory under `repeat`; each answer becomes a line of
// `observed-replay-PID.jsonl`. Works from Node 18.
'use strict';

const fs = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { types } = require('node:util');
const vm = require('node:vm');
const { find, load } = require('./proofstone_modules.cjs');
const { decode, encode, nameError } = require('./proofstone_values.cjs');

const DISGUISED = /^(NODE_(ENV|TEST|OPTIONS|V8_COVERAGE)|JEST|VITEST|VITE_|MOCHA|AVA|TAP|TEST|NYC|npm_|CI$|CI_|CONTINUOUS|GITHUB_|GITLAB_|BUILD_|COVERAGE|PROOFSTONE)/;
const THUNK = Symbol.for('proofstone call 8c41d7e2');
const MAX_SECONDS = 5;
const { openSync, writeSync, readFileSync } = fs;
const { setTimeout: startTimer, clearTimeout: stopTimer } = globalThis;

class GivenUpError extends Error {}
class LeftError extends Error {}

function readRequest(directory) {
  return JSON.parse(readFileSync(join(directory, 'observe.json'), 'utf8'));
}

// Make the calls through `invoke` and write the answers. `open(path)` returns the namespace of a module.
async function repeat(directory, request, runner, open, invoke = Reflect.apply) {
  const asked = request.repeat;
  const folder = process.cwd();
  const journal = openSync(join(directory, `observed-${runner}-${process.pid}.jsonl`), 'a');
  const write = (line) => writeSync(journal, `${JSON.stringify(line)}\n`);
  write({ event: 'start', runner, base: null });
  const calls = asked.calls.map((call, number) => ({ call, number }));
  if (asked.backwards) calls.reverse();
  const modules = new Map();
  for (const path of new Set(asked.calls.map((call) => call.path))) {
    try {
      modules.set(path, await open(path));
    } catch {
      // The calls of its functions have no answer.
    }
  }
  for (const { call, number } of calls) {
    for (let time = 0; time < asked.times; time += 1) {
      const answer = await repeatCall(call, modules, asked.call_seconds, invoke);
      if (process.cwd() !== folder) process.chdir(folder);
      if (answer !== null) write({ event: 'answer', number, answer });
    }
  }
  write({ event: 'finish' });
}

// The answer of one call; null if it cannot be repeated, or was given up.
async function repeatCall(call, modules, seconds, invoke) {
  let thunk;
  let owner = null;
  try {
    const { found, holder } = find(modules.get(call.path), call.name);
    const getClass = (path, name) => find(modules.get(path), name).found;
    const values = JSON.parse(call.arguments).map((value) => decode(value, getClass));
    const self = call.parameters[0][0] === 'self' ? values.shift() : holder;
    if (typeof found !== 'function') return null;
    if (typeof holder === 'function') {
      owner = { path: call.path, name: call.name.slice(0, call.name.lastIndexOf('.')), prototype: holder.prototype };
    }
    thunk = () => invoke(found, self, values);
  } catch {
    return null;
  }
  const leave = process.exit;
  process.exit = () => { throw new LeftError(); };
  try {
    let value = seconds ? invokeBriefly(thunk, seconds) : thunk();
    if (types.isPromise(value)) value = await settle(value, seconds || MAX_SECONDS);
    try {
      return ['value', encode(value, owner)];
    } catch {
      return null;
    }
  } catch (error) {
    return error instanceof GivenUpError ? null : ['error', error instanceof LeftError ? 'exit' : nameError(error)];
  } finally {
    process.exit = leave;
  }
}

function invokeBriefly(thunk, seconds) {
  globalThis[THUNK] = thunk;
  try {
    return new vm.Script(`globalThis[Symbol.for('${THUNK.description}')]()`).runInThisContext({ timeout: seconds * 1000 });
  } catch (error) {
    throw error?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? new GivenUpError() : error;
  } finally {
    delete globalThis[THUNK];
  }
}

function settle(promise, seconds) {
  return new Promise((resolve, reject) => {
    const timer = startTimer(() => reject(new GivenUpError()), seconds * 1000);
    Promise.prototype.then.call(promise, resolve, reject).finally(() => stopTimer(timer));
  });
}

async function main() {
  const directory = process.env.PROOFSTONE_REPORT;
  const request = readRequest(directory);
  for (const name of Object.keys(process.env)) {
    if (name.startsWith('PROOFSTONE') || (request.repeat.backwards && DISGUISED.test(name))) delete process.env[name];
  }
  const options = (process.env.NODE_OPTIONS || '').split(' ').filter((word) => word && !word.includes(__dirname));
  if (options.length) process.env.NODE_OPTIONS = options.join(' ');
  else delete process.env.NODE_OPTIONS;
  process.argv = [process.argv[0], join(request.root, 'main.js')];
  if (request.repeat.backwards) process.chdir(fs.mkdtempSync(join(tmpdir(), 'work-')));
  for (const name of Object.keys(require.cache)) {
    if (name.startsWith(__dirname)) delete require.cache[name];
  }
  process.on('uncaughtException', () => {}); // of what a call leaves behind
  process.on('unhandledRejection', () => {});
  await repeat(directory, request, 'replay', (path) => load(request.root, path));
  process.exit(0);
}

module.exports = { readRequest, repeat };

if (require.main === module) main();
