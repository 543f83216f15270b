/** What a node's cache of objects holds (core/ports/object-database.ts). */
import type { RepositoryId } from '../kernel/ids.ts';

export interface CachedRepositories {
  /** Returns the repositories of which anything is on this node's disk. */
  cached(): readonly RepositoryId[];
}
