/**
 * Counts reads that are refused to a token, so that the owner of its account sees who tried.
 *
 * Invariants: only a secret that is or was a token's is counted, under the account of that token: nobody can fill the
 * record of another account, and an owner learns nothing of the repositories of others. A person on the website is not
 * counted.
 */
import type { RefusedReadReason } from '../../core/usage/events.ts';
import type { TransferMeter } from '../../core/usage/meter.ts';
import type { Principal } from '../../core/use-cases/callers/principal.ts';
import type { Denial } from './admission.ts';

interface Counting {
  readonly transfer: Pick<TransferMeter, 'addRefusedRead'>;
}

/** Counts a read that admission denied. `principal` is null if the request has none. */
export function countDeniedRead(counting: Counting, denial: Denial, principal: Principal | null): void {
  if (denial.denied === 'credential-not-valid' && denial.ended !== null) {
    const { account, tokenId: token, ended } = denial.ended;
    counting.transfer.addRefusedRead({ account, token, reason: ended });
  }
  const caller = denial.denied === 'rate-exceeded' ? denial.principal : principal;
  const reason = reasonOf(denial);
  if (caller !== null && reason !== null) countRefusedRead(counting, caller, reason);
}

/** Counts a read that its token was admitted to, and that was refused. */
export function countRefusedRead({ transfer }: Counting, principal: Principal, reason: RefusedReadReason): void {
  if (principal.kind === 'session') return;
  transfer.addRefusedRead({ account: principal.account, token: principal.tokenId, reason });
}

function reasonOf(denial: Denial): RefusedReadReason | null {
  switch (denial.denied) {
    case 'credential-missing':
    case 'credential-not-valid':
    case 'too-many-failed-tokens':
      return null;
    case 'rate-exceeded':
      return 'rate-exceeded';
    case 'not-permitted':
      return denial.lack.lacks === 'grant' ? 'grant-missing' : 'scope-missing';
    case 'repository-not-found':
      return 'repository-not-found';
  }
}
