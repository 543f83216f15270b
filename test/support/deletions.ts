/** What use cases that look at deleted repositories need, over the ports of a test node. */
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import type { WaitingStorageReader } from '../../core/ports/usage.ts';
import type { DeletionsContext } from '../../core/use-cases/repositories/deletions.ts';
import { createMemoryAccountLog } from './memory/account-log.ts';
import { createMemoryPolicyMarks } from './memory/delivery-store.ts';
import { createMemoryWaitingStorage } from './memory/waiting-storage.ts';
import type { TestNode } from './node.ts';
import { TEST_RETENTION_MS, testPastEntities } from './past-repositories.ts';

/** No policy has removed anything yet. */
interface SeenDeletions extends DeletionsContext {
  readonly readModels: DeletionsContext['readModels'] & WaitingStorageReader;
  readonly marks: PolicyMarks;
}

export function seesDeletions<Node extends TestNode>(node: Node): Node & SeenDeletions {
  const { events, digest } = node;
  const readModels = { ...createMemoryAccountLog({ events, digest }), ...createMemoryWaitingStorage(events) };
  const marks = createMemoryPolicyMarks();
  return { ...node, past: testPastEntities(node), readModels, marks, retentionMs: TEST_RETENTION_MS };
}
