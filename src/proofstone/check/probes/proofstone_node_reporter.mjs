// Reporter for `node --test`: one JSON line per test into $PROOFSTONE_REPORT, nothing on its own destination.
//
// A suite is no test: it is written only when it broke by itself (a hook, an exception while it was declared).
// A file that holds no test, or that could not be loaded, is a test of its own, as Node counts it.

import { openSync, writeSync } from 'node:fs';
import { join, resolve } from 'node:path';

const LIMIT = 2000;
const directory = process.env.PROOFSTONE_REPORT;
delete process.env.PROOFSTONE_REPORT; // processes that tests start do not report

// A file that could not be loaded has no error of its own: what its process printed names the cause.
function message(error, printed) {
  if (!error) return '';
  const cause = error.cause ?? error;
  const text = String(cause?.stack ?? cause?.message ?? cause);
  return (printed && (cause === error || typeof cause === 'string') ? printed : text).slice(0, LIMIT);
}

function status(kind, data) {
  if (data.skip !== undefined && data.skip !== false) return 'skipped';
  if (data.todo !== undefined && data.todo !== false) {
    // A todo without a body passes too: it has shown nothing.
    return kind === 'test:fail' ? 'xfailed' : 'skipped';
  }
  return kind === 'test:fail' ? 'failed' : 'passed';
}

// The line for one finished test, or null for what is not a test.
function line(kind, data, ancestors, printed) {
  const file = data.file ?? null;
  const wholeFile = data.nesting === 0 && file !== null && resolve(data.name) === file;
  const error = data.details?.error;
  let outcome = status(kind, data);
  if (data.details?.type === 'suite') {
    if (outcome !== 'failed' || error?.failureType === 'subtestsFailed') return null;
    outcome = 'error';
  } else if (wholeFile && outcome === 'failed') {
    outcome = 'error';
  }
  return {
    event: 'test',
    file,
    name: wholeFile ? '' : [...ancestors, data.name].join(' > '),
    status: outcome,
    ms: data.details?.duration_ms ?? null,
    message: outcome === 'passed' ? '' : message(error, wholeFile ? printed : ''),
  };
}

export default async function* report(source) {
  if (!directory) return;
  const journal = openSync(join(directory, `node-${process.pid}.jsonl`), 'a', 0o600);
  const write = (value) => writeSync(journal, JSON.stringify(value) + '\n');
  write({ event: 'start', runner: 'node', version: process.version, base: process.cwd() });
  const open = new Map(); // file -> names of the tests that are open in it, by nesting
  const printed = new Map(); // file -> the beginning of what its process printed as errors
  for await (const { type, data } of source) {
    if (type === 'test:stderr' && data.file) {
      const before = printed.get(data.file) ?? '';
      if (before.length < LIMIT) printed.set(data.file, before + data.message);
    }
    if (type !== 'test:start' && type !== 'test:pass' && type !== 'test:fail') continue;
    const names = open.get(data.file) ?? [];
    open.set(data.file, names);
    names.length = data.nesting;
    if (type === 'test:start') {
      names[data.nesting] = data.name;
    } else {
      const signal = data.details?.error?.signal;
      if (signal) write({ event: 'died', what: `the test file ${data.name}: ${signal} killed it` });
      const test = line(type, data, names, printed.get(data.file) ?? '');
      if (test) write(test);
    }
  }
  write({ event: 'finish', exit: null, imported_from: [] });
}
