// Values as plain JSON, and back: the same form as proofstone_values.py writes, so that the same rules read both.
//
// Only values that can be copied faithfully are taken: plain values, arrays, plain objects, maps, sets, dates, bytes, and
// objects of the class whose method is called. Nothing of the project is called, neither to read a value nor to make it
// again: no getter, no proxy, no `toJSON`. Works from Node 18.
'use strict';

const { types } = require('node:util');
const tmpdir = require('node:os').tmpdir();

const MAX_NODES = 600;
const MAX_TEXT = 20000;
const MAX_DEPTH = 40;
const SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?:[^\ud800-\udbff]|^)[\udc00-\udfff]/;

class UnfaithfulError extends Error {}

function fail(why) {
  throw new UnfaithfulError(why);
}

// `owner` is the class whose objects may be copied: { path, name, prototype }, or null.
function encode(value, owner) {
  return new Encoder(owner).value(value);
}

class Encoder {
  constructor(owner) {
    this.owner = owner;
    this.nodes = 0;
    this.text = 0;
    this.open = new Set();
  }

  value(value) {
    this.nodes += 1;
    if (this.nodes > MAX_NODES || this.open.size > MAX_DEPTH) fail('too large');
    switch (typeof value) {
      case 'undefined': return ['text', 'undefined', 'undefined'];
      case 'boolean': return value;
      case 'number': return this.number(value);
      case 'bigint': return ['text', 'bigint', this.string(`${value}n`)];
      case 'string': return this.string(value);
      case 'object': return value === null ? null : this.nested(value);
      default: return fail(typeof value);
    }
  }

  number(value) {
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) return value;
    if (Object.is(value, -0)) return ['float', '-0.0'];
    if (Number.isFinite(value)) return ['float', String(value)];
    return ['float', Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'];
  }

  string(text) {
    this.text += text.length;
    if (this.text > MAX_TEXT) fail('too large');
    if (text.includes(tmpdir) || text.includes('/tmp/')) fail('a temporary path');
    if (SURROGATE.test(text)) fail('half characters');
    return text;
  }

  nested(value) {
    if (types.isProxy(value) || this.open.has(value)) fail('a proxy, or a value that holds itself');
    this.open.add(value);
    try {
      return this.object(value);
    } finally {
      this.open.delete(value);
    }
  }

  object(value) {
    if (Array.isArray(value)) return ['list', this.items(value)];
    if (types.isDate(value)) return ['text', 'Date', this.bare(value, Number.isNaN(Date.prototype.getTime.call(value))
      ? fail('no date') : Date.prototype.toISOString.call(value))];
    if (types.isMap(value)) {
      const pairs = [...Map.prototype.entries.call(value)].map(([key, item]) => ['list', [this.value(key), this.value(item)]]);
      return this.bare(value, ['object', '', 'Map', 'list', ['list', pairs], []]);
    }
    if (types.isSet(value)) {
      const items = [...Set.prototype.values.call(value)].map((item) => this.value(item));
      return this.bare(value, ['object', '', 'Set', 'list', ['list', items], []]);
    }
    if (types.isUint8Array(value)) {
      if (value.byteLength > MAX_TEXT) fail('too large');
      const hex = ['bytes', Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')];
      return Buffer.isBuffer(value) ? ['object', '', 'Buffer', 'bytes', hex, []] : hex;
    }
    const prototype = Object.getPrototypeOf(value);
    if (this.owner && prototype === this.owner.prototype) {
      return ['object', this.owner.path, this.owner.name, 'object', null, this.pairs(value)];
    }
    if (!isPlain(value, prototype)) fail('an object of a class');
    return ['dict', this.pairs(value)];
  }

  // A built-in object without properties of its own.
  bare(value, encoded) {
    if (Reflect.ownKeys(value).length) fail('properties of its own');
    return encoded;
  }

  items(value) {
    if (Reflect.ownKeys(value).length !== value.length + 1) fail('holes, or properties of its own');
    return Array.from({ length: value.length }, (_, index) => this.value(plain(value, index)));
  }

  pairs(value) {
    return Reflect.ownKeys(value).map((key) => {
      if (typeof key !== 'string') fail('a symbol');
      return [this.string(key), this.value(plain(value, key))];
    });
  }
}

// The value of a property that can be read without calling anything.
function plain(value, key) {
  const property = Object.getOwnPropertyDescriptor(value, key);
  if (!property || !('value' in property) || !property.enumerable) fail('a property that is computed or hidden');
  return property.value;
}

// Whether it is a plain object, perhaps one of another context.
function isPlain(value, prototype) {
  return prototype !== null && Object.getPrototypeOf(prototype) === null
    && Object.prototype.hasOwnProperty.call(prototype, 'isPrototypeOf')
    && !types.isBoxedPrimitive(value) && !types.isNativeError(value) && !types.isPromise(value) && !types.isRegExp(value)
    && !types.isArgumentsObject(value) && !types.isExternal(value) && !types.isModuleNamespaceObject(value);
}

// A new value. `find(path, name)` returns a class of the project.
function decode(value, find) {
  if (!Array.isArray(value)) return value;
  const again = (item) => decode(item, find);
  switch (value[0]) {
    case 'float': return { nan: NaN, inf: Infinity, '-inf': -Infinity }[value[1]] ?? Number(value[1]);
    case 'bytes': return new Uint8Array(Buffer.from(value[1], 'hex'));
    case 'list': return value[1].map(again);
    case 'dict': return define({}, value[1], again);
    case 'text': return decodeText(value[1], value[2]);
    case 'object': return decodeObject(value, find, again);
    default: return fail(`unknown kind ${value[0]}`);
  }
}

function decodeText(kind, text) {
  if (kind === 'undefined') return undefined;
  if (kind === 'bigint') return BigInt(text.slice(0, -1));
  return new Date(text);
}

function decodeObject(value, find, again) {
  const [, path, name, , content, pairs] = value;
  if (path) return define(Object.create(find(path, name).prototype), pairs, again);
  if (name === 'Map') return new Map(again(content));
  if (name === 'Set') return new Set(again(content));
  return Buffer.from(again(content));
}

function define(made, pairs, again) {
  for (const [key, item] of pairs) {
    Object.defineProperty(made, key, { value: again(item), writable: true, enumerable: true, configurable: true });
  }
  return made;
}

// The name of what was thrown: the code of an error of the system, else the class.
function nameError(error) {
  if (!types.isNativeError(error)) return typeof error;
  const code = Object.getOwnPropertyDescriptor(error, 'code')?.value;
  const isSystem = typeof code === 'string' && Object.getOwnPropertyDescriptor(error, 'syscall') !== undefined;
  const name = Object.getPrototypeOf(error)?.constructor?.name;
  return isSystem ? code : typeof name === 'string' ? name : 'Error';
}

module.exports = { decode, encode, nameError };
