import { manyNodesOn } from './scenario.ts';

manyNodesOn({ name: 'PostgreSQL', start: async () => ({}) });
