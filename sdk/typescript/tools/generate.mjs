// Makes src/generated of the OpenAPI document, so that neither a type nor an
// endpoint of this SDK can drift from what the desk publishes.
//
//   node tools/generate.mjs           writes the files
//   node tools/generate.mjs --check   writes nothing; fails where they would change
//
// It knows the part of JSON Schema that the document uses, and stops at any other.
import { readFile, writeFile } from 'node:fs/promises';

const here = (path) => new URL(path, import.meta.url);
const specification = here('../../openapi/svc_public_api_v1.json');
const out = here('../src/generated/');
const width = 110;

// Names that mean something else in TypeScript.
const renamed = { Symbol: 'PairSymbol' };

// Keywords that say more of a value than a type can, or nothing of it.
const passedOver = new Set([
  'description', 'minimum', 'maximum', 'pattern', 'minItems', 'maxItems', 'minLength', 'maxLength', 'contentEncoding',
  'default', 'format', 'title', 'example', 'examples', 'dependentRequired', 'uniqueItems', 'exclusiveMinimum', '$comment',
  'x-go-name',
]);
const understood = new Set([
  '$ref', 'const', 'enum', 'anyOf', 'oneOf', 'type', 'properties', 'required', 'additionalProperties', 'items', 'prefixItems',
]);

const nameOf = (ref) => {
  const name = ref.replace('#/components/schemas/', '');
  return renamed[name] ?? name;
};

function doc(text, indent) {
  if (!text) return '';
  const lines = text.replaceAll('*/', '*\\/').trim().split('\n');
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((l) => `${indent} * ${l}`.trimEnd()).join('\n')}\n${indent} */\n`;
}

const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`);
const literal = (value) => (typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value));
const union = (types) => [...new Set(types)].join(' | ');

function members(schema, indent) {
  const required = new Set(schema.required);
  return Object.entries(schema.properties ?? {}).map(([name, s]) =>
    `${doc(s.description, indent)}${indent}${key(name)}${required.has(name) ? '' : '?'}: ${type(s, indent)};\n`).join('');
}

function object(schema, indent) {
  const more = schema.additionalProperties;
  const open = more === undefined || more === true ? 'unknown' : more === false ? null : type(more, `${indent}  `);
  if (!schema.properties) return open === null ? 'Record<string, never>' : `Record<string, ${open}>`;
  const named = `{\n${members(schema, `${indent}  `)}${indent}}`;
  return open === null || open === 'unknown' ? named : `${named} & Record<string, ${open}>`;
}

function array(schema, indent) {
  if (schema.prefixItems) return `[${schema.prefixItems.map((s) => type(s, indent)).join(', ')}]`;
  const item = type(schema.items ?? {}, indent);
  return /^[\w$.]+$/.test(item) ? `${item}[]` : `Array<${item}>`;
}

const simple = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' };

/** type returns the TypeScript of a schema. */
function type(schema, indent = '') {
  for (const word of Object.keys(schema)) {
    if (!passedOver.has(word) && !understood.has(word)) throw new Error(`a schema with ${word}: ${JSON.stringify(schema).slice(0, 200)}`);
  }
  if (schema.$ref) return nameOf(schema.$ref);
  if ('const' in schema) return literal(schema.const);
  if (schema.enum) return union(schema.enum.map(literal));
  if (schema.anyOf) return union(schema.anyOf.map((s) => type(s, indent)));
  if (schema.oneOf && !schema.properties) return union(schema.oneOf.map((s) => type(s, indent)));
  return union([schema.type ?? (schema.properties ? 'object' : 'any')].flat().map((t) => {
    if (t === 'object') return object(schema, indent);
    if (t === 'array') return array(schema, indent);
    return t === 'any' ? 'unknown' : simple[t];
  }));
}

const header = '// Made by tools/generate.mjs of the OpenAPI document. Not to be edited.\n\n';

function schemas({ components }) {
  return header + Object.entries(components.schemas).map(([name, schema]) => {
    const named = renamed[name] ?? name;
    const plain = schema.type === 'object' && schema.properties && typeof schema.additionalProperties !== 'object';
    const body = plain ? `export interface ${named} {\n${members(schema, '  ')}}\n` : `export type ${named} = ${type(schema)};\n`;
    return doc(schema.description, '') + body;
  }).join('\n');
}

const json = (content) => content?.['application/json']?.schema;

// operation reads what a method needs of an operation, or null where it does not
// answer JSON: pages and streams are no calls.
function operation(document, path, item, method) {
  const spec = item[method];
  const answers = Object.entries(spec.responses).filter(([status]) => status.startsWith('2')).map(([, r]) => json(r.content));
  if (answers.length === 0 || answers.some((s) => !s)) return null;
  const parameters = [...(item.parameters ?? []), ...(spec.parameters ?? [])]
    .map((p) => (p.$ref ? document.components.parameters[p.$ref.split('/').pop()] : p));
  const unknown = parameters.filter((p) => p.in === 'header' && p.name !== 'Idempotency-Key');
  if (unknown.length > 0) throw new Error(`${spec.operationId}: header ${unknown[0].name}`);
  const number = answers.every((s) => simple[s.type] === 'number');
  return {
    id: spec.operationId, method: method.toUpperCase(), path, summary: spec.summary, description: spec.description,
    inPath: parameters.filter((p) => p.in === 'path'), query: parameters.filter((p) => p.in === 'query'),
    keyed: parameters.some((p) => p.name === 'Idempotency-Key'), body: json(spec.requestBody?.content),
    // An empty alternative makes the token optional; then it is not sent.
    bearer: (spec.security ?? []).length > 0 && !spec.security.some((one) => Object.keys(one).length === 0),
    on: (spec.servers ?? item.servers ?? document.servers).some((s) => s.description.startsWith('base')) ? 'base' : 'api',
    answer: number ? 'number' : union(answers.map((s) => (s.$ref ? `schemas.${nameOf(s.$ref)}` : 'Record<string, unknown>'))),
    number,
  };
}

function argument(name, parameters) {
  const fields = parameters.map((p) => {
    const t = type(p.schema, '').replace(/\b([A-Z]\w+)\b(?!')/g, 'schemas.$1');
    return `${key(p.name)}${p.required ? '' : '?'}: ${t}`;
  });
  const optional = parameters.every((p) => !p.required);
  return { name, text: `${name}: { ${fields.join('; ')} }${optional ? ' = {}' : ''}` };
}

function method(op) {
  const args = [];
  if (op.inPath.length > 0) args.push(argument('path', op.inPath));
  if (op.query.length > 0) args.push(argument('query', op.query));
  if (op.body) args.push({ name: 'body', text: `body: schemas.${nameOf(op.body.$ref)}` });
  const flags = Object.entries({ on: op.on === 'api' && "'api'", keyed: op.keyed, bearer: op.bearer, number: op.number });
  const told = [`method: '${op.method}'`, `path: '${op.path}'`, ...flags.filter(([, v]) => v).map(([k, v]) => `${k}: ${v}`)];
  const input = args.length > 0 ? `{ ${args.map((a) => a.name).join(', ')} }` : '{}';
  const options = `options?: ${op.keyed ? 'KeyedOptions' : 'CallOptions'}`;
  const parameters = [...args.map((a) => a.text), options];
  const oneLine = `  ${op.id}(${parameters.join(', ')}): Promise<${op.answer}> {`;
  const signature = oneLine.length <= width ? oneLine : `  ${op.id}(\n${parameters.map((p) => `    ${p},\n`).join('')}  ): Promise<${op.answer}> {`;
  const text = [`${op.summary}.`, op.description, `\`${op.method} ${op.path}\``].filter(Boolean).join('\n\n');
  return `${doc(text, '  ')}${signature}\n    return this.call({ ${told.join(', ')} }, ${input}, options);\n  }\n`;
}

function operations(document) {
  const all = [];
  for (const [path, item] of Object.entries(document.paths)) {
    for (const name of ['get', 'post']) {
      const op = item[name] && operation(document, path, item, name);
      if (op) all.push(op);
    }
  }
  return `${header}import type { CallOptions, Input, KeyedOptions, Operation } from '../call.js';
import type * as schemas from './schemas.js';

/** Operations has a method for each endpoint that answers JSON, by its operationId. */
export abstract class Operations {
  /** call sends one request and returns the answer. */
  protected abstract call<T>(operation: Operation, input: Input, options: CallOptions | undefined): Promise<T>;

${all.map(method).join('\n')}}
`;
}

const document = JSON.parse(await readFile(specification, 'utf8'));
const files = { 'schemas.ts': schemas(document), 'operations.ts': operations(document) };
for (const [name, text] of Object.entries(files)) {
  const file = new URL(name, out);
  if (!process.argv.includes('--check')) await writeFile(file, text);
  else if ((await readFile(file, 'utf8')) !== text) {
    console.error(`src/generated/${name} is not that of the OpenAPI document: run make sdk, and commit what it writes`);
    process.exitCode = 1;
  }
}
