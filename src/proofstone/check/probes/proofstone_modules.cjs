// Loads a module of the project in a plain process, as its tests load it.
//
// Node itself is asked first. What it cannot load (TypeScript in an older Node, JSX, imports without the ending of the
// file) is turned into CommonJS by the compiler that the project itself has installed: TypeScript, esbuild, Babel, or
// Rolldown, which Vite brings along.
// Works from Node 18.
'use strict';

const Module = require('node:module');
const { existsSync, readFileSync } = require('node:fs');
const { dirname, extname, join } = require('node:path');
const { pathToFileURL } = require('node:url');

const ENDINGS = ['.ts', '.tsx', '.mts', '.cts', '.jsx'];
const INSTEAD = { '.js': ['.ts', '.tsx', '.jsx'], '.mjs': ['.mts'], '.cjs': ['.cts'], '.jsx': ['.tsx'] };
let current = null;

async function load(root, path) {
  const file = join(root, path);
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    for (const make of [withTypeScript, withEsbuild, withBabel]) {
      try {
        install(root, make(Module.createRequire(file), file));
        return Module.createRequire(file)(file);
      } catch {
        // It is not installed, has another interface, or does not know this language.
      }
    }
    return bundle(file, error);
  }
}

// The module as one file with everything that it imports by relative paths.
async function bundle(file, error) {
  const place = findRolldown(file);
  if (place === null) throw error;
  const { rolldown } = await import(pathToFileURL(place).href);
  const external = (id) => !id.startsWith('.') && !id.startsWith('/');
  const build = await rolldown({ input: file, platform: 'node', external, logLevel: 'silent' });
  const { output } = await build.generate({ format: 'cjs', exports: 'named' });
  const module = new Module(file);
  module.filename = file;
  module.paths = Module._nodeModulePaths(dirname(file));
  module._compile(output[0].code, file);
  return module.exports;
}

function findRolldown(file) {
  let from = file;
  for (const name of ['vitest', 'vite', 'rolldown']) {
    try {
      from = join(Module.createRequire(from).resolve(`${name}/package.json`), '../package.json');
    } catch {
      // Another one may bring the next along.
    }
  }
  const entry = join(dirname(from), 'dist/index.mjs');
  return from.endsWith('rolldown/package.json') && existsSync(entry) ? entry : null;
}

function withTypeScript(require) {
  const typescript = require('typescript');
  const compilerOptions = {
    module: typescript.ModuleKind.CommonJS,
    target: typescript.ScriptTarget.ES2022,
    jsx: typescript.JsxEmit.React,
    esModuleInterop: true,
    allowJs: true,
    experimentalDecorators: true,
  };
  return (text, fileName) => typescript.transpileModule(text, { fileName, compilerOptions }).outputText;
}

function withEsbuild(require) {
  const { transformSync } = require('esbuild');
  return (text, file) => {
    const ending = extname(file);
    const loader = ending === '.tsx' || ending === '.jsx' ? ending.slice(1) : /ts$/.test(ending) ? 'ts' : 'jsx';
    return transformSync(text, { loader, format: 'cjs', target: 'node18' }).code;
  };
}

function withBabel(require, file) {
  const { transformSync } = require('@babel/core');
  return (text, filename) => {
    const caller = { name: 'babel-jest', supportsStaticESM: false, supportsDynamicImport: false };
    return transformSync(text, { filename, cwd: dirname(file), rootMode: 'upward-optional', envName: 'test', caller }).code;
  };
}

function install(root, compile) {
  const isInstalled = current !== null;
  current = compile;
  if (isInstalled) return;
  const usual = Module._extensions['.js'];
  for (const ending of ENDINGS) {
    Module._extensions[ending] = (module, file) => module._compile(current(readFileSync(file, 'utf8'), file), file);
  }
  for (const ending of ['.js', '.mjs']) {
    Module._extensions[ending] = (module, file) => {
      if (file.startsWith(root) && !file.includes('/node_modules/')) {
        module._compile(current(readFileSync(file, 'utf8'), file), file);
      } else {
        usual(module, file);
      }
    };
  }
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (request, parent, ...others) {
    try {
      return resolve.call(this, request, parent, ...others);
    } catch (error) {
      if (!parent?.filename || !/^\.{1,2}\//.test(request)) throw error;
      const ending = extname(request);
      const stem = join(dirname(parent.filename), request.slice(0, request.length - ending.length));
      const file = (INSTEAD[ending] ?? []).map((other) => stem + other).find((name) => existsSync(name));
      if (file === undefined) throw error;
      return file;
    }
  };
}

// The thing that a module exports by this name, and what holds it.
function find(namespace, name) {
  const parts = name.split('.');
  const hasName = parts[0] === 'default' ? 'default' in namespace : parts[0] in namespace;
  const inner = parts[0] !== 'default' ? namespace.default?.[parts[0]] : undefined;
  const isCommonJs = inner !== undefined && (!hasName || inner === namespace[parts[0]]);
  let holder = isCommonJs ? namespace.default : namespace;
  let found = parts[0] === 'default' && !('default' in namespace) ? namespace : holder[parts[0]];
  for (const part of parts.slice(1)) {
    holder = found;
    const isMethod = typeof found === 'function' && Object.hasOwn(found.prototype ?? {}, part) && !Object.hasOwn(found, part);
    found = isMethod ? found.prototype[part] : found[part];
  }
  return { found, holder };
}

module.exports = { find, load };
