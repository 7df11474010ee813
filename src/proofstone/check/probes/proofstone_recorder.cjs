// Records calls of exported functions while JavaScript tests run: the arguments before the call, and the answer.
//
// Loaded through NODE_OPTIONS=--require=<this file>, in every process and thread of the runner. The functions of the tree
// are wrapped (check/variants/javascript_functions.py) and hand themselves over through a property of `process`, which
// all contexts of a runner share. Of calls within a call of the same function only the outermost is recorded. What cannot
// be copied is not recorded. Nothing that goes wrong here may change a test. Works from Node 18.
'use strict';

const { openSync, writeSync } = require('node:fs');
const { join } = require('node:path');
const { types } = require('node:util');
const { threadId } = require('node:worker_threads');
const { encode, nameError } = require('./proofstone_values.cjs');

const KEY = 'proofstone recorder 8c41d7e2';
const MAX_CALLS = 40;
const MAX_TOTAL = 400;
const PAGE = "return typeof window === 'object' && typeof document === 'object'";

const directory = process.env.PROOFSTONE_RECORD;
const counts = new Map();
const active = new Map();
let total = 0;
let journal = null;
let hasPage = false;

function write(line) {
  if (journal === null) {
    journal = openSync(join(directory, `observed-node-${process.pid}-${threadId}.jsonl`), 'a');
    write({ event: 'start', runner: 'node', base: null });
    process.on('exit', () => write({ event: 'finish' }));
  }
  writeSync(journal, `${JSON.stringify(line)}\n`);
}

function begin(path, name, given, self, owner, isStatic) {
  const count = counts.get(path + name) ?? 0;
  if (count >= MAX_CALLS || total >= MAX_TOTAL) return null;
  try {
    const isMethod = owner !== undefined && !isStatic;
    const known = owner === undefined ? null
      : { path, name: name.slice(0, name.lastIndexOf('.')), prototype: owner.prototype };
    const values = isMethod ? [self, ...given] : given;
    const copied = values.map((value) => encode(value, known));
    const names = values.map((_, index) => (isMethod && index === 0 ? 'self' : `argument${index}`));
    counts.set(path + name, count + 1);
    total += 1;
    return { path, name, parameters: [names, [], [], []], arguments: copied, known };
  } catch {
    return null;
  }
}

function end(record, kind, value) {
  try {
    const answer = [kind, kind === 'error' ? nameError(value) : encode(value, record.known)];
    const { path, name, parameters } = record;
    const module = path.replace(/\.\w+$/, '');
    write({ event: 'call', path, module, name, parameters, arguments: record.arguments, answer });
  } catch {
    // It cannot be copied, or not be written.
  }
}

// A page has variables that no plain process has, so answers may differ honestly.
function notePage(body) {
  if (hasPage) return;
  try {
    hasPage = body.constructor(PAGE)() === true;
    if (hasPage) write({ event: 'unavailable', what: 'page', why: 'the tests have the variables of a page' });
  } catch {
    // The context compiles no text.
  }
}

function record(path, name, given, body, self, owner, isStatic) {
  const depth = active.get(path + name) ?? 0;
  const begun = depth ? null : begin(path, name, Array.from(given), self, owner, isStatic);
  if (begun === null) return body();
  notePage(body);
  let value;
  active.set(path + name, 1);
  try {
    value = body();
  } catch (error) {
    end(begun, 'error', error);
    throw error;
  } finally {
    active.delete(path + name);
  }
  if (types.isPromise(value)) {
    Promise.prototype.then.call(value, (result) => end(begun, 'value', result), (error) => end(begun, 'error', error));
  } else {
    end(begun, 'value', value);
  }
  return value;
}

if (directory) Object.defineProperty(process, Symbol.for(KEY), { value: record, configurable: true, enumerable: false });
