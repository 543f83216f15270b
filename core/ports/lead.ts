/**
 * Leader election: of all nodes, one does some work for all of them.
 *
 * Invariants: a node that loses the lead is notified as soon as it detects the loss. Until then two nodes may lead,
 * so the work must be correct even when two nodes do it.
 */
export interface Lead {
  /**
   * Calls `work` whenever this node becomes the leader, and again after `work` has ended or failed. The signal is
   * aborted when the lead is lost. The returned function gives the lead up; it resolves when `work` has ended.
   */
  whenever(name: string, work: (signal: AbortSignal) => Promise<void>): () => Promise<void>;
}

/** The lead, for work that writes on the same connection: when the connection is lost, the node can no longer write. */
export interface HeldLead<Connection> {
  readonly connection: Connection;
  /** Aborted when the connection, and with it the lead, is lost; its reason says why. */
  readonly lost: AbortSignal;
  /** Gives the lead up by closing the connection, even while a query runs on it. Idempotent. */
  release(): void;
}

/** Takes the lead of this name if no other node has it; otherwise resolves with null. */
export type TakeLead<Connection> = (name: string) => Promise<HeldLead<Connection> | null>;
