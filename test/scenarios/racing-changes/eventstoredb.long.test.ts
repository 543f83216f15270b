import { racingChangesOn } from './scenario.ts';

racingChangesOn('eventstoredb');
