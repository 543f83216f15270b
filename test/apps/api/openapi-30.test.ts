/** OpenAPI 3.0 from 3.1, form by form; test/apps/api/openapi.test.ts compares what both documents take. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { inOpenApi30 } from '../../../apps/api/openapi-30.ts';

describe('in version 3.0', () => {
  const schemas = {
    Person: { type: 'object', properties: { type: { type: 'string', const: 'person' } } },
    Group: { type: 'object', properties: { type: { type: 'string', const: 'group' } } },
  };
  const [person, group] = [{ $ref: '#/schemas/Person' }, { $ref: '#/schemas/Group' }];
  const written = (schema: object): unknown => inOpenApi30({ schemas, schema })['schema'];
  const WRITTEN_PERSON = { type: 'object', properties: { type: { type: 'string', enum: ['person'] } } };

  test('null is said by nullable, also where a reference stands beside it', () => {
    assert.deepEqual(written({ type: ['integer', 'null'], format: 'int64' }), {
      ...{ type: 'integer', nullable: true, format: 'int64' },
    });
    assert.deepEqual(written({ oneOf: [person, { type: 'null' }], description: 'Who' }), {
      ...{ ...WRITTEN_PERSON, nullable: true, description: 'Who' },
    });
  });

  test('one value is an enumeration, and an example is the first one', () => {
    assert.deepEqual(written({ type: 'string', const: 'a', examples: ['a', 'b'] }), {
      ...{ type: 'string', enum: ['a'], example: 'a' },
    });
  });

  test('a reference with words beside it is one of all, and names of members go unchecked', () => {
    assert.deepEqual(written({ ...person, description: 'Who' }), { allOf: [person], description: 'Who' });
    assert.deepEqual(written({ type: 'object', propertyNames: { pattern: 'a' } }), { type: 'object' });
  });

  test('alternatives name the member that tells them apart, if one does', () => {
    assert.deepEqual(written({ oneOf: [person, group] }), {
      oneOf: [person, group],
      discriminator: { propertyName: 'type', mapping: { person: person.$ref, group: group.$ref } },
    });
    assert.deepEqual(written({ oneOf: [person, person] }), { oneOf: [person, person] });
    assert.deepEqual(written({ oneOf: [person, { type: 'string' }] }), { oneOf: [person, { type: 'string' }] });
  });

  test('a type that it does not have stops the making', () => {
    assert.throws(() => written({ type: 'null' }), /no type/);
    assert.throws(() => written({ type: ['string', 'integer'] }), /no type/);
  });
});
