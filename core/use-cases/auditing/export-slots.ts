/**
 * Bounds how many exports of accounts' logs a node sends at the same time, in all and for one account.
 *
 * Invariants: an export that finds no slot is refused instead of waiting: those before it may be read for hours. A
 * slot is freed once.
 */
import { createFairSlots, type FairSlots } from '../../kernel/fair-slots.ts';
import { LOG_EXPORTS_OF_ACCOUNT_MAX } from '../../kernel/limits.ts';

/** Exports of accounts' logs that a node sends at the same time: each may be read slowly for hours. */
export const LOG_EXPORTS_AT_ONCE_MAX = 16;

/** By account. */
export type ExportSlots = Pick<FairSlots, 'take'>;

export function createExportSlots(): ExportSlots {
  return createFairSlots({ slots: LOG_EXPORTS_AT_ONCE_MAX, slotsPerKey: LOG_EXPORTS_OF_ACCOUNT_MAX });
}
