/**
 * Records why a test or suite is skipped: vitest's own `skip` takes no reason.
 *
 * Invariants: every skip has a reason; the reporter lists it at the end of the run.
 */
declare module 'vitest' {
  interface TaskMeta {
    /** Why the test or suite was skipped. */
    readonly skippedFor?: string;
  }
}

export interface SkipOptions {
  readonly skip: boolean;
  readonly meta: { readonly skippedFor?: string };
}

/** Returns options that skip a test or suite for a reason, or run it when `reason` is false. */
export function skippedFor(reason: string | false): SkipOptions {
  return reason === false ? { skip: false, meta: {} } : { skip: true, meta: { skippedFor: reason } };
}
