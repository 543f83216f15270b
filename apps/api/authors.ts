/** Who commits and tags are by that are made over the API. */
import type { z } from 'zod';
import { commitSeconds } from '../../core/git/commit-time.ts';
import type { Signature } from '../../core/git/objects.ts';
import { type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import { serviceSignature } from '../../core/use-cases/pushing/service-author.ts';
import type { RepositoryCall } from './route.ts';
import type { AUTHOR } from './schemas/new-commits.ts';

/** The account of the repository, at this moment. */
export function byAccount(
  { context, repository }: Pick<RepositoryCall, 'context' | 'repository'>,
  now: Timestamp,
): Signature {
  return serviceSignature(repository.account.username, new URL(context.addresses().webUrl).hostname, now);
}

/** Who is given, at this moment unless a date is given; else `otherwise`. */
export function signatureOf(
  given: z.output<typeof AUTHOR> | undefined,
  otherwise: Signature,
  now: Timestamp,
): Signature {
  if (given === undefined) return otherwise;
  const { name, email, date } = given;
  if (date === undefined) return { name, email, seconds: commitSeconds(now), offsetMinutes: 0 };
  const [, sign, hours, minutes] = /([+-])(\d\d):?(\d\d)$/.exec(date) ?? [];
  const offsetMinutes = (sign === '-' ? -1 : 1) * (60 * Number(hours ?? 0) + Number(minutes ?? 0));
  return { name, email, seconds: commitSeconds(timestamp(new Date(date).toISOString())), offsetMinutes };
}
