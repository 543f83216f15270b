/**
 * The OpenAPI document in version 3.0, for generators of clients that do not read 3.1.
 *
 * Invariants: a value that fits a schema of the document fits the one made from it. The converse holds too, but for the
 * names of an object's members, for which 3.0 has no keyword.
 */
import { besideNull, isNode, listIn, type Node, rewritten } from './document-forms.ts';
import { FORM_TYPE } from './openapi.ts';

export function inOpenApi30(document: object): Node {
  const whole = rewritten(document, withoutForms);
  const withoutChoices = rewritten(whole, (node) => withNullableCopy(whole, node));
  const tellable = rewritten(withoutChoices, (node) => withDiscriminator(whole, node));
  return { ...rewritten(tellable, inForms30), openapi: '3.0.3' };
}

/** ogen makes no client of a document with a form whose members may have any name. The JSON beside it stays. */
function withoutForms(node: Node, key: string): Node {
  const { [FORM_TYPE]: _, ...content } = node;
  return key === 'content' ? content : node;
}

/** No keyword beside a reference can add null to what it refers to: that is written out. */
function withNullableCopy(document: Node, node: Node): Node {
  const { oneOf, ...others } = node;
  const one = besideNull(oneOf);
  if (one === null) return node;
  const { type, ...schema } = referenced(document, one['$ref']);
  return { ...schema, ...others, type: [type, 'null'] };
}

/**
 * Names the member whose constant tells alternatives apart, without which ogen makes no client of them. The document in
 * 3.1 does not: the client in Rust that openapi-generator makes could not read them then.
 */
function withDiscriminator(document: Node, node: Node): Node {
  const choices = listIn(node['oneOf']);
  const references = choices.flatMap((one) => (isNode(one) && typeof one['$ref'] === 'string' ? [one['$ref']] : []));
  if (references.length === 0 || references.length < choices.length) return node;
  const alternatives = references.map((reference) => constantsOf(referenced(document, reference)));
  for (const propertyName of alternatives[0]?.keys() ?? []) {
    const values = alternatives.flatMap((constants) => constants.get(propertyName) ?? []);
    if (new Set(values).size < references.length) continue;
    const pairs = values.map((value, index): [string, string] => [value, references[index] ?? '']);
    return { ...node, discriminator: { propertyName, mapping: Object.fromEntries(pairs) } };
  }
  return node;
}

/** The members that can have one text only. */
function constantsOf({ properties }: Node): ReadonlyMap<string, string> {
  const constants = new Map<string, string>();
  for (const [name, schema] of Object.entries(isNode(properties) ? properties : {})) {
    if (isNode(schema) && typeof schema['const'] === 'string') constants.set(name, schema['const']);
  }
  return constants;
}

function referenced(document: Node, reference: unknown): Node {
  const steps = String(reference).split('/').slice(1);
  const found = steps.reduce<unknown>((part, step) => (isNode(part) ? part[step] : undefined), document);
  if (!isNode(found)) throw new TypeError(`The document has no ${String(reference)}`);
  return found;
}

function inForms30(node: Node): Node {
  // The members of an object may have the names of keywords: each is a schema.
  if (Object.values(node).every(isNode)) return node;
  const { type, const: only, examples, propertyNames: _, $ref, ...others } = node;
  if ($ref !== undefined) return Object.keys(others).length === 0 ? node : { allOf: [{ $ref }], ...others };
  const example = examples === undefined ? {} : { example: listIn(examples)[0] };
  return { ...typeIn30(type), ...(only === undefined ? {} : { enum: [only] }), ...others, ...example };
}

function typeIn30(type: unknown): Node {
  if (type === undefined) return {};
  const [one, none = 'null', ...rest] = Array.isArray(type) ? listIn(type) : [type];
  if (one === 'null' || none !== 'null' || rest.length > 0) {
    throw new TypeError(`OpenAPI 3.0 has no type ${JSON.stringify(type)}`);
  }
  return { type: one, ...(Array.isArray(type) ? { nullable: true } : {}) };
}
