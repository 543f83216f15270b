/**
 * Folds access tokens' streams into the list of active tokens, and the ids of exchanged ones.
 *
 * Invariants: the list does not hold the hash of a token's secret. Who may do what is decided on the streams, never
 * on this list.
 */
import { accessTokenEventKinds } from '../../core/access-token/events.ts';
import { readEvent } from '../../core/kernel/decider.ts';
import { entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { removeAged } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { accessTokenTables } from './table.ts';

export const accessTokensProjection: Projection = {
  name: 'access_tokens',
  version: 3,
  categories: ['accessToken'],
  tables: accessTokenTables,
  onPoison: 'park',
  open: (table) => ({
    prepare: async (events) => toWrite(table, fold(events)),
  }),
};

/** Columns of a token's row. A change holds only the columns that it sets. */
type Fields = JsonObject & { readonly id: string };

interface Changes {
  readonly created: Map<string, Fields>;
  readonly updated: Map<string, Fields>;
  /** The ends of exchanged tokens, by their ids. */
  readonly exchanged: Map<string, string>;
  readonly revoked: Set<string>;
}

function fold(events: readonly RecordedEvent[]): Changes {
  const changes: Changes = { created: new Map(), updated: new Map(), exchanged: new Map(), revoked: new Set() };
  const { created, updated, exchanged, revoked } = changes;
  for (const recorded of events) {
    const id = entityIdOf(recorded.stream);
    const event = readEvent(accessTokenEventKinds, recorded);
    switch (event.type) {
      case 'AccessTokenCreated': {
        const { account, secret_hash: _secretHash, ...fields } = event.data;
        const { occurredAt, position } = recorded;
        created.set(id, { id, account_id: account, created_at: occurredAt, position: String(position), ...fields });
        break;
      }
      case 'AccessTokenExchanged':
        exchanged.set(id, event.data.expires_at);
        break;
      case 'AccessTokenUpdated': {
        const kept = created.has(id) ? created : updated;
        kept.set(id, { ...kept.get(id), id, ...event.data });
        break;
      }
      case 'AccessTokenRevoked':
        created.delete(id);
        updated.delete(id);
        exchanged.delete(id);
        revoked.add(id);
        break;
    }
  }
  return changes;
}

/** No token is in two of the lists. */
function toWrite(table: TableOf, { created, updated, exchanged, revoked }: Changes): Write {
  const [tokens, exchangedTokens] = [table('access_tokens'), table('exchanged_tokens')];
  const before = async (transaction: Queryable): Promise<void> => {
    for (const one of accessTokenTables) await removeAged(transaction, table(one.name), one, [...exchanged.values()]);
  };
  return {
    before,
    lists: [
      {
        items: [...revoked],
        text: `DELETE FROM ${tokens} WHERE id IN (SELECT value::uuid FROM json_array_elements_text($1))`,
      },
      {
        items: [...revoked],
        text: `DELETE FROM ${exchangedTokens} WHERE id IN (SELECT value::uuid FROM json_array_elements_text($1))`,
      },
      {
        items: [...exchanged].map(([id, expires_at]) => ({ id, expires_at })),
        text: `INSERT INTO ${exchangedTokens} SELECT * FROM json_to_recordset($1) AS t(id uuid, expires_at text)`,
      },
      {
        items: [...created.values()],
        text: `INSERT INTO ${tokens} SELECT * FROM json_to_recordset($1) AS t(id uuid, account_id uuid, name text,
          scope text, grants json, repository_ids json, expires_at text, created_at text, token_prefix text,
          position bigint)`,
      },
      {
        items: [...updated.values()].map((fields) => ({ ...fields, sets_expiry: 'expires_at' in fields })),
        text: `UPDATE ${tokens} AS t SET
            name = coalesce(u.name, t.name),
            scope = coalesce(u.scope, t.scope),
            grants = coalesce(u.grants, t.grants),
            repository_ids = coalesce(u.repository_ids, t.repository_ids),
            expires_at = CASE WHEN u.sets_expiry THEN u.expires_at ELSE t.expires_at END
          FROM json_to_recordset($1) AS u(id uuid, name text, scope text, grants json, repository_ids json,
            expires_at text, sets_expiry boolean)
          WHERE t.id = u.id`,
      },
    ],
  };
}
