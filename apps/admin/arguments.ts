/** Parses arguments of `strata-admin`; an invalid one is a usage error. */
import { InvalidArgumentError } from 'commander';
import { GRANTS, type Grant } from '../../core/kernel/grants.ts';
import { parseTimestamp, parseUuid, type RepositoryId, type Timestamp } from '../../core/kernel/ids.ts';

export function grantList(text: string): readonly Grant[] {
  return text.split(',').map((name) => {
    const grant = GRANTS.find((candidate) => candidate === name.trim());
    if (grant === undefined) throw new InvalidArgumentError(`${JSON.stringify(name)} is no grant.`);
    return grant;
  });
}

export function idList(text: string): readonly RepositoryId[] {
  return text.split(',').map((name) => {
    const id = parseUuid<RepositoryId>(name.trim());
    if (id === null) throw new InvalidArgumentError(`${JSON.stringify(name)} is no id.`);
    return id;
  });
}

export function instant(text: string): Timestamp {
  const at = new Date(text);
  const parsed = Number.isNaN(at.getTime()) ? null : parseTimestamp(at.toISOString());
  if (parsed === null) throw new InvalidArgumentError('Give a time such as 2030-01-31T00:00:00Z.');
  return parsed;
}
