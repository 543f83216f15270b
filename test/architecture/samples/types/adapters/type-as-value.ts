// refused: TS1484
import { Clock } from '../core/clock.ts';

export type Time = Clock;
