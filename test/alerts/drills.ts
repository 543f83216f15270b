/** The alerts that `alert-drill.long.test.ts` makes fire. It fails if one of them did not. */
export const DRILLS = [
  'StrataCertificateExpires',
  'StrataCheckpointsContradicted',
  'StrataClockDiffers',
  'StrataConnectionsWait',
  'StrataDiskLow',
  'StrataLogDiverged',
  'StrataModelBehind',
  'StrataModelHalted',
  'StrataNodeDown',
  'StrataParkedStreams',
  'StrataPartDegraded',
  'StrataPushOutage',
  'StrataRestarted',
  'StrataSweepFails',
  'StrataVerificationFault',
  'StrataVerificationLate',
  'StrataWebhooksStuck',
  'StrataWorkflowsOverdue',
] as const;

export type Drill = (typeof DRILLS)[number];
