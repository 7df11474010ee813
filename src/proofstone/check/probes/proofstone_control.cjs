// Lets a test that asserts nothing repeat recorded calls below the runner.
//
// Loaded through NODE_OPTIONS=--require=<this file>. The test hands over the modules that it has loaded itself, because
// only the runner loads them as the other tests see them. An answer that is as recorded here and another in a plain
// process depends on the runner, and not on what a test set up. Works from Node 18.
'use strict';

const KEY = 'proofstone control 8c41d7e2';
const directory = process.env.PROOFSTONE_RECORD;

if (directory) {
  const { readRequest, repeat } = require('./proofstone_replay.cjs');
  const control = (modules, invoke) => (
    repeat(directory, readRequest(directory), 'control', async (path) => modules[path], invoke)
  );
  Object.defineProperty(process, Symbol.for(KEY), { value: control, configurable: true, enumerable: false });
}
