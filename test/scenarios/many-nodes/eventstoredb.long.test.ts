import { eventStoreDbSettings } from '../../support/eventstoredb/process.ts';
import { manyNodesOn } from './scenario.ts';

manyNodesOn({ name: 'EventStoreDB', start: eventStoreDbSettings });
