/** What use cases that look at deleted repositories need, over the ports of a test node. */
import { createPastEntities } from '../../core/runtime/past-entities.ts';
import type { DeletionsContext } from '../../core/use-cases/repositories/deletions.ts';
import { createMemoryAccountLog } from './memory/account-log.ts';
import { createMemorySnapshots } from './memory/snapshots.ts';
import type { TestNode } from './node.ts';
import { TEST_RETENTION_MS } from './past-repositories.ts';

export function seesDeletions<Node extends TestNode>(node: Node): Node & DeletionsContext {
  const { events, entities, digest } = node;
  const past = createPastEntities({
    ...{ events, entities, snapshots: createMemorySnapshots(), complete: async (event) => event },
    onFault: (_what, cause) => {
      throw cause;
    },
  });
  return { ...node, past, readModels: createMemoryAccountLog({ events, digest }), retentionMs: TEST_RETENTION_MS };
}
