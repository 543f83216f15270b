/** Schemas that several resources share. */
import { z } from 'zod';
import { OBJECT_ID_PATTERN, parseTimestamp, parseUuid, type Timestamp, type Uuid } from '../../../core/kernel/ids.ts';
import { PAGE_LIMIT_DEFAULT } from '../../../core/kernel/limits.ts';
import { hasMore, type Page, pageNumbered } from '../../../core/kernel/page.ts';

/** Items that a client may ask for on one page of a list. */
export const PAGE_LIMIT_MAX = 100;
/** The number of a page that a client may ask for. It fits into 32 bits. */
export const PAGE_NUMBER_MAX = 10_000_000;
/**
 * Items before a page that a client may ask for. Their number fits into 32 bits. Internal: it follows from the two
 * limits that it multiplies.
 */
const PAGE_OFFSET_MAX = PAGE_NUMBER_MAX * PAGE_LIMIT_MAX;

/**
 * `moves` marks a time that goes on by itself, so that a client that writes it back may have an earlier one.
 * `wire` is the JSON Schema of a value on the wire, where it differs from the one that zod derives: zod takes a number
 * in a query for a string. The OpenAPI document shows `wire` instead.
 */
declare module 'zod' {
  interface GlobalMeta {
    wire?: { readonly [keyword: string]: unknown };
    moves?: true;
  }
}

/** Takes a UUID in either case; the parsed value is in lower case. */
export function idSchema<Id extends Uuid>(description: string) {
  return z
    .string()
    .transform((text, issues): Id => {
      const id = parseUuid<Id>(text);
      if (id !== null) return id;
      issues.addIssue({ code: 'invalid_format', format: 'uuid', message: 'Expected a UUID', input: text });
      return z.NEVER;
    })
    .meta({ description, wire: { type: 'string', format: 'uuid' } });
}

/** What every URL that the service calls has: clients see it before they send one. */
export const URL_PATTERN = '^[Hh][Tt][Tt][Pp][Ss]?://[^/\\\\\\s][^\\\\\\s]*$';

/** Bodies with `scope` and `repository_ids` that do not fit together. */
export const UNFIT_SELECTION = {
  anyOf: [
    {
      required: ['scope', 'repository_ids'],
      properties: { scope: { const: 'ALL_REPO' }, repository_ids: { minItems: 1 } },
    },
    {
      required: ['scope', 'repository_ids'],
      properties: { scope: { const: 'SELECTED_REPO' }, repository_ids: { maxItems: 0 } },
    },
  ],
};

/** The bytes of a path, where its text does not have them. */
export const ENCODED_PATH = z
  .string()
  .optional()
  .meta({
    description:
      'Only there if the path is not UTF-8: its bytes, percent-encoded, as each path and `path=` of a request take them.',
    examples: ['latin1-%FC.txt'],
  });

export const ID = z.string().meta({ wire: { type: 'string', format: 'uuid' } });
export const HEXSHA = z.string().meta({ wire: { type: 'string', pattern: `^${OBJECT_ID_PATTERN}$` } });
/** RFC 3339 in UTC with milliseconds. */
export const TIMESTAMP = z.string().meta({
  wire: { type: 'string', format: 'date-time', examples: ['2026-11-21T10:00:00.000Z'] },
});

/** Takes any RFC 3339 time; the parsed value is in UTC with milliseconds. */
export const INSTANT = z.iso
  .datetime({ offset: true, message: 'Expected an RFC 3339 time such as 2026-11-21T10:00:00Z' })
  .transform((text, issues): Timestamp => {
    const utc = parseTimestamp(new Date(text).toISOString());
    // In UTC, a time with an offset may fall before the year 1 or after 9999.
    if (utc !== null) return utc;
    issues.addIssue({ code: 'custom', message: 'Expected a time from the year 1 to 9999', input: text });
    return z.NEVER;
  })
  .meta({ wire: { type: 'string', format: 'date-time' } });

/** The parameter `at` of routes that show the past. */
export const AT_QUERY = z.object({
  at: INSTANT.optional().meta({
    description: 'The moment, included. It must not lie in the future. Absent: now.',
    wire: { type: 'string', format: 'date-time' },
  }),
});

export const BYTES = z.int().nonnegative();

interface NumberRange {
  readonly min: number;
  readonly max: number;
  readonly description: string;
}

/** A whole number in a query string, which must be there. */
export function requiredNumber({ min, max, description }: NumberRange) {
  return z
    .string()
    .transform((text, issues): number => {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return value;
      issues.addIssue({ code: 'custom', message: `Expected a whole number from ${min} to ${max}`, input: text });
      return z.NEVER;
    })
    .meta({ description, wire: { type: 'integer', minimum: min, maximum: max } });
}

/** A whole number in a query string. */
function wholeNumber({ otherwise, ...range }: NumberRange & { readonly otherwise: number }) {
  const { min, max, description } = range;
  return requiredNumber(range)
    .optional()
    .transform((value) => value ?? otherwise)
    .meta({
      description,
      wire: { type: 'integer', minimum: min, maximum: max, default: otherwise },
    });
}

/** A number in an account's log, absent for its beginning. */
export function sequenceNumber(description: string) {
  return z
    .string()
    .regex(/^\d{1,15}$/, 'Expected a whole number')
    .transform(Number)
    .optional()
    .meta({ description, wire: { type: 'integer', minimum: 0 } });
}

/** A boolean in a query string, false if absent. */
export function flag(description: string) {
  return z
    .enum(['true', 'false'])
    .optional()
    .transform((value) => value === 'true')
    .meta({ description, wire: { type: 'boolean', default: false } });
}

/** The length of a page; other lists than most choose another default and maximum. */
export function pageLength(otherwise: number, max: number) {
  return wholeNumber({ min: 1, max, otherwise, description: 'Items on a page.' });
}

export const LIMIT = pageLength(PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX);

export const OFFSET = wholeNumber({
  min: 0,
  max: PAGE_OFFSET_MAX,
  otherwise: 0,
  description: 'Items before the page.',
});

export const PAGE_QUERY = z.object({
  page: wholeNumber({ min: 0, max: PAGE_NUMBER_MAX, otherwise: 0, description: 'Pages count from 0.' }),
  limit: LIMIT,
});

/** For a list that answers all of its items unless one of the two is given. */
export const OPTIONAL_PAGE_QUERY = z.object({
  page: requiredNumber({ min: 0, max: PAGE_NUMBER_MAX, description: 'Pages count from 0.' }).optional(),
  limit: requiredNumber({ min: 1, max: PAGE_LIMIT_MAX, description: 'Items on a page, by default 50.' }).optional(),
});

export const PAGINATION = z
  .object({
    page: z.int().nonnegative(),
    limit: z.int().positive(),
    total: z.int().nonnegative().meta({ description: 'The number of items on all pages.' }),
    has_more: z.boolean(),
  })
  .meta({ id: 'Pagination' });

export const OFFSET_PAGINATION = z
  .object({
    limit: z.int().min(1).max(PAGE_LIMIT_MAX),
    offset: z.int().nonnegative(),
    total: z.int().nonnegative().meta({ description: 'The number of items on all pages.' }),
  })
  .meta({ id: 'OffsetPagination' });

export type Pagination = z.output<typeof PAGINATION>;

export function paginationOf(query: { readonly page: number; readonly limit: number }, total: number): Pagination {
  const { page, limit } = query;
  return { page, limit, total, has_more: hasMore(pageOf(query), total) };
}

export function pageOf({ page, limit }: { readonly page: number; readonly limit: number }): Page {
  return pageNumbered(page, limit);
}

export const PERSON = z.object({ name: z.string(), email: z.string() }).meta({ id: 'Person' });

/** The fields of a commit in every listing. */
export const COMMIT_SUMMARY = z.object({
  id: ID,
  hexsha: HEXSHA,
  message: z.string(),
  author: PERSON,
  committer: PERSON,
});

const FIELD_FAULT = z
  .object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() })
  .meta({ id: 'FieldFault' });

export const ERROR = z.object({ detail: z.union([z.string(), z.array(FIELD_FAULT)]) }).meta({
  id: 'Error',
  description: 'What is wrong: a text, or, for input that does not fit its schema, one entry for each field.',
});
