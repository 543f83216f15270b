/** An account's log on the wire: its entries, and the filters that select them. */
import { z } from 'zod';
import { RECORD_CATEGORIES, RECORD_TYPES } from '../../../core/catalogue.ts';
import type { StreamName } from '../../../core/kernel/envelope.ts';
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import { STREAM_NAME_BYTES_MAX } from '../../../core/kernel/limits.ts';
import type { SliceForm } from '../../../core/use-cases/auditing/export-account-log.ts';
import { ENTRIES_PAGE_LIMIT_DEFAULT, ENTRIES_PAGE_LIMIT_MAX } from '../limits.ts';
import { ID, INSTANT, idSchema, pageLength, sequenceNumber, TIMESTAMP } from './common.ts';

const REFERENCE = z.string().nullable().meta({ description: 'A commitment: SHA-256(nonce || value), in hex.' });

const ENTRY = z
  .object({
    sequence: z.int().nonnegative().meta({ description: "The entry's number in the account's log, from 0." }),
    id: ID,
    stream: z.string().meta({ examples: ['repository-0197d2f0-0000-7000-8000-000000000000'] }),
    revision: z.int().nonnegative().meta({ description: 'Its number in its stream, from 0.' }),
    type: z.string().meta({ examples: ['RefsUpdated'] }),
    version: z
      .int()
      .positive()
      .meta({ description: 'The version of the form of `data`, which is shown as it was first written.' }),
    occurred_at: TIMESTAMP,
    actor: z.object({ kind: z.enum(['token', 'user', 'trust_rule', 'system', 'admin']), id: z.string() }),
    request_id: z.string().meta({ description: 'The `X-Request-Id` of the answer.' }),
    source_address_ref: REFERENCE,
    causation_id: ID.nullable(),
    data: z.looseObject({}),
  })
  .meta({ id: 'LogEntry' });

export const LOG_LINE = z
  .object({
    entry: ENTRY,
    leaf: z.string().meta({ description: 'The hash of its leaf, in base64.' }),
    openings: z
      .record(z.string(), z.object({ nonce: z.string(), value: z.string() }))
      .meta({ description: 'What the references of the entry commit to, while it is not erased; never a secret.' }),
  })
  .meta({ id: 'LogLine' });

export const ACCOUNT_EVENTS = z
  .object({
    events: z.array(LOG_LINE).meta({ description: 'Oldest first.' }),
    pagination: z.object({
      next_after: z.int().nonnegative().nullable().meta({ description: 'The value of `after` for the next page.' }),
      has_more: z.boolean(),
    }),
  })
  .meta({ id: 'LogPage' });

const LOG_TIMES = {
  since: INSTANT.optional().meta({ description: 'Log times from this one on.' }),
  until: INSTANT.optional().meta({ description: 'Log times before this one.' }),
};

/** Printable ASCII. A command of `strata-admin` is several words. */
const ACTOR = /^[\x21-\x7e]+( [\x21-\x7e]+)*$/;
const isActor = (text: string): boolean => ACTOR.test(text);
const STREAM = /^[A-Za-z]+-[\x21-\x7e]+$/;

function parseStream(name: string | undefined): StreamName | undefined {
  return name as StreamName | undefined;
}

/** A type, or a stream, that no log has is refused: an empty page would read as "that never happened". */
const isType = (text: string): boolean => RECORD_TYPES.has(text);
const isStream = (text: string): boolean => STREAM.test(text) && RECORD_CATEGORIES.has(text.replace(/-.*$/, ''));

function filterText(isFilter: (text: string) => boolean, expected: string, description: string) {
  return z
    .string()
    .max(STREAM_NAME_BYTES_MAX)
    .refine(isFilter, `Expected ${expected}`)
    .optional()
    .meta({ description, wire: { type: 'string', maxLength: STREAM_NAME_BYTES_MAX } });
}

export const ACCOUNT_EVENTS_QUERY = z.object({
  after: sequenceNumber('Entries behind this sequence.'),
  limit: pageLength(ENTRIES_PAGE_LIMIT_DEFAULT, ENTRIES_PAGE_LIMIT_MAX),
  type: filterText(isType, 'a type of entry, such as RefsUpdated', 'Entries of this type.'),
  stream: filterText(isStream, 'a stream, such as account-ID', 'Entries of this stream.').transform(parseStream),
  repository_id: idSchema<RepositoryId>("Entries of this repository, and the account's own that name it.").optional(),
  actor_id: filterText(
    isActor,
    'a name in printable ASCII',
    'Caused by this token, user, trust rule, policy or command.',
  ),
  request_id: filterText(isActor, 'an id in printable ASCII', 'Appended by this request, or run of a command.'),
  ...LOG_TIMES,
});

/** Form 1 stays for a year, for verifiers of versions before form 2. */
const SLICE_FORM = z
  .enum(['1', '2'])
  .optional()
  .transform((form): SliceForm => (form === '1' ? 1 : 2))
  .meta({
    description: 'The form of a slice: 2 has guards at its edges, 1 has none.',
    wire: { type: 'string', enum: ['1', '2'], default: '2' },
  });

export const EXPORT_QUERY = z.object({ ...LOG_TIMES, form: SLICE_FORM });
