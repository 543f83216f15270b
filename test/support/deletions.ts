/** What use cases that look at deleted repositories need, over the ports of a test node. */
import type { DeletionsContext } from '../../core/use-cases/repositories/deletions.ts';
import { createMemoryAccountLog } from './memory/account-log.ts';
import type { TestNode } from './node.ts';
import { TEST_RETENTION_MS, testPastEntities } from './past-repositories.ts';

export function seesDeletions<Node extends TestNode>(node: Node): Node & DeletionsContext {
  const { events, digest } = node;
  const past = testPastEntities(node);
  return { ...node, past, readModels: createMemoryAccountLog({ events, digest }), retentionMs: TEST_RETENTION_MS };
}
