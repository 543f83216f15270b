/** Parses arguments of `strata-admin`; an invalid one is a usage error. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { GRANTS, type Grant, SCOPES, type Scope } from '../../core/kernel/grants.ts';
import { type AccountId, parseTimestamp, parseUuid, type RepositoryId, type Timestamp } from '../../core/kernel/ids.ts';

const EVERYTHING: readonly Grant[] = ['ALL'];
const NO_REPOSITORIES: readonly RepositoryId[] = [];

/** What the options of `withPermissionOptions` become. */
export interface Permissions {
  readonly scope: Scope;
  readonly grants: readonly Grant[];
  readonly repositoryIds: readonly RepositoryId[];
  readonly expiresAt: Timestamp | null;
}

/** Adds the options that say what a new access token may do, where, and how long. */
export function withPermissionOptions(command: Command): Command {
  return command
    .addOption(new Option('--scope <scope>').choices(SCOPES).default('ALL_REPO'))
    .option('--grants <list>', `comma-separated, of ${GRANTS.join(', ')}`, grantList, EVERYTHING)
    .option('--repository-ids <list>', 'comma-separated ids, for SELECTED_REPO', idList, NO_REPOSITORIES)
    .option('--expires-at <time>', 'RFC 3339; never when left out', instant, null);
}

function grantList(text: string): readonly Grant[] {
  return text.split(',').map((name) => {
    const grant = GRANTS.find((candidate) => candidate === name.trim());
    if (grant === undefined) throw new InvalidArgumentError(`${JSON.stringify(name)} is no grant.`);
    return grant;
  });
}

function idList(text: string): readonly RepositoryId[] {
  return text.split(',').map((name) => {
    const id = parseUuid<RepositoryId>(name.trim());
    if (id === null) throw new InvalidArgumentError(`${JSON.stringify(name)} is no id.`);
    return id;
  });
}

function instant(text: string): Timestamp {
  const at = new Date(text);
  const parsed = Number.isNaN(at.getTime()) ? null : parseTimestamp(at.toISOString());
  if (parsed === null) throw new InvalidArgumentError('Give a time such as 2030-01-31T00:00:00Z.');
  return parsed;
}

export function accountId(text: string): AccountId {
  const id = parseUuid<AccountId>(text);
  if (id === null) throw new InvalidArgumentError('Give the id of an account.');
  return id;
}
