/** Every guard that `npm run test:mutations` takes out. */
import { CHECKING_PACKS_MUTATIONS } from './checking-packs.ts';
import { ENDING_KEY_MUTATIONS } from './ending-keys.ts';
import { ENTERING_MUTATIONS } from './entering.ts';
import { EVENTSTOREDB_MUTATIONS } from './eventstoredb.ts';
import { FETCHED_ID_MUTATIONS } from './fetched-ids.ts';
import { GIT_CLIENT_MUTATIONS } from './git-clients.ts';
import { GIT_MEMORY_MUTATIONS } from './git-memory.ts';
import type { Mutation } from './mutation.ts';
import { PACK_READING_MUTATIONS } from './pack-reading.ts';
import { READ_LEASE_MUTATIONS } from './read-leases.ts';
import { REPEATED_CHANGE_MUTATIONS } from './repeated-changes.ts';
import { RESTORED_LOG_MUTATIONS } from './restored-logs.ts';
import { SEARCH_MUTATIONS } from './searches.ts';
import { SLICE_EDGE_MUTATIONS } from './slice-edges.ts';
import { SMALL_PACK_MUTATIONS } from './small-packs.ts';
import { TWO_VERSIONS_MUTATIONS } from './two-versions.ts';
import { UPGRADE_MUTATIONS } from './upgrades.ts';
import { VERIFICATION_MUTATIONS } from './verification.ts';
import { WRITTEN_COMMIT_MUTATIONS } from './written-commits.ts';

export const MUTATIONS: readonly Mutation[] = [
  ...CHECKING_PACKS_MUTATIONS,
  ...ENTERING_MUTATIONS,
  ...EVENTSTOREDB_MUTATIONS,
  ...FETCHED_ID_MUTATIONS,
  ...GIT_CLIENT_MUTATIONS,
  ...GIT_MEMORY_MUTATIONS,
  ...PACK_READING_MUTATIONS,
  ...READ_LEASE_MUTATIONS,
  ...REPEATED_CHANGE_MUTATIONS,
  ...RESTORED_LOG_MUTATIONS,
  ...SEARCH_MUTATIONS,
  ...SLICE_EDGE_MUTATIONS,
  ...ENDING_KEY_MUTATIONS,
  ...SMALL_PACK_MUTATIONS,
  ...TWO_VERSIONS_MUTATIONS,
  ...UPGRADE_MUTATIONS,
  ...VERIFICATION_MUTATIONS,
  ...WRITTEN_COMMIT_MUTATIONS,
];
