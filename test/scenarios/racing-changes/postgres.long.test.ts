import { racingChangesOn } from './scenario.ts';

racingChangesOn('postgres');
