/** The forms of JSON Schema in which the OpenAPI document is written: those that generators of clients share. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { makeOpenApiDocument } from '../../../apps/api/document.ts';
import { inSharedForms } from '../../../apps/api/document-forms.ts';

interface Schema {
  readonly [keyword: string]: unknown;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What one schema or answer has that some generator cannot read, whatever is inside of it. */
const REFUSED: Readonly<Record<string, (schema: Schema) => boolean>> = {
  'a choice with null, where the type could hold it': ({ anyOf, oneOf }) =>
    [anyOf ?? oneOf ?? []].flat().some((one) => isSchema(one) && one['type'] === 'null') &&
    ![anyOf ?? oneOf ?? []].flat().some((one) => isSchema(one) && '$ref' in one),
  'alternatives that may hold together': ({ anyOf }) => anyOf !== undefined,
  'a member that is only null': ({ properties }) =>
    isSchema(properties) && Object.values(properties).some((one) => isSchema(one) && one['type'] === 'null'),
  'a UUID with a pattern': ({ format, pattern }) => format === 'uuid' && pattern !== undefined,
  'a whole number above 2 GiB without int64': ({ type, format, maximum }) =>
    [type].flat().includes('integer') &&
    format !== 'int64' &&
    !(typeof maximum === 'number' && Math.abs(maximum) <= 2 ** 31 - 1),
  'an exclusive bound': (schema) => 'exclusiveMinimum' in schema || 'exclusiveMaximum' in schema,
  'an object as a default': (schema) => isSchema(schema['default']) && typeof schema['type'] === 'string',
  'a name that Go gives to the constructor of another schema': ({ schemas }) =>
    isSchema(schemas) && Object.keys(schemas).some((name) => name.startsWith('New') && name.slice(3) in schemas),
  // Clients send the first type of a body. Only answers must have a description.
  'an answer of several media types': ({ content, description }) =>
    description !== undefined && isSchema(content) && Object.keys(content).length > 1,
};

/** Where a document has which of these forms. A condition that holds for no body is no schema of a client. */
function refusedForms(value: unknown, place = ''): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = isSchema(value)
    ? Object.entries(REFUSED).flatMap(([form, has]) => (has(value) ? [`${place}: ${form}`] : []))
    : [];
  const inner = Object.entries(value).filter(([name]) => !['not', 'examples', 'example'].includes(name));
  return [...own, ...inner.flatMap(([name, part]) => refusedForms(part, `${place}/${name}`))];
}

test('the document has no form that some generator of clients cannot read', async () => {
  assert.deepEqual(refusedForms(await makeOpenApiDocument('1.0.0')), []);
});

test.each<[form: string, schema: Schema]>([
  ['a choice with null, where the type could hold it', { oneOf: [{ type: 'string' }, { type: 'null' }] }],
  ['alternatives that may hold together', { anyOf: [{ $ref: '#/x' }, { type: 'array' }] }],
  ['a member that is only null', { properties: { quota: { type: 'null' } } }],
  ['a UUID with a pattern', { type: 'string', format: 'uuid', pattern: '^[0-9a-f-]{36}$' }],
  ['a whole number above 2 GiB without int64', { type: ['integer', 'null'] }],
  ['a whole number above 2 GiB without int64', { type: 'integer', maximum: 1e12 }],
  ['an exclusive bound', { type: 'integer', format: 'int64', exclusiveMinimum: 0 }],
  ['an object as a default', { type: 'object', default: {} }],
  [
    'an answer of several media types',
    { description: 'Done', content: { 'application/json': {}, 'application/octet-stream': {} } },
  ],
])('the check refuses %s', (form, schema) => {
  assert.deepEqual(refusedForms({ components: { schemas: { X: schema } } }), [`/components/schemas/X: ${form}`]);
});

test('the check refuses a name that Go gives to the constructor of another schema', () => {
  assert.deepEqual(refusedForms({ components: { schemas: { Rule: {}, NewRule: {} } } }), [
    '/components: a name that Go gives to the constructor of another schema',
  ]);
});

describe('a schema is written so that it takes the same values', () => {
  const written = (schema: object): unknown => inSharedForms({ schema })['schema'];

  test('with null among its types, also where it lists its values', () => {
    const anyOf = [{ type: 'string', enum: ['a'], description: 'inner' }, { type: 'null' }];
    assert.deepEqual(written({ anyOf, description: 'outer' }), {
      ...{ type: ['string', 'null'], enum: ['a', null], description: 'outer' },
    });
    assert.deepEqual(written({ anyOf: [{ $ref: '#/x' }, { type: 'null' }] }), {
      oneOf: [{ $ref: '#/x' }, { type: 'null' }],
    });
  });

  test('with int64 for a whole number that may pass 32 bits, and inclusive bounds', () => {
    assert.deepEqual(written({ type: 'integer', exclusiveMinimum: 0 }), {
      ...{ type: 'integer', format: 'int64', minimum: 1 },
    });
    assert.deepEqual(written({ type: 'integer', maximum: 2 ** 31 - 1 }), { type: 'integer', maximum: 2 ** 31 - 1 });
    assert.deepEqual(written({ type: 'integer', maximum: 2 ** 31 }), {
      ...{ type: 'integer', format: 'int64', maximum: 2 ** 31 },
    });
    // 32 bits hold no number below this one either.
    assert.deepEqual(written({ type: 'integer', minimum: -(2 ** 31) - 1, maximum: 0 }), {
      ...{ type: 'integer', format: 'int64', minimum: -(2 ** 31) - 1, maximum: 0 },
    });
  });
});
