// temporary
export function createReadModels(_o: unknown): any {
  return { caughtUp: async () => {}, usageOf: async () => ({ storageBytes: 0, transferBytes: 0, ingressBytes: 0 }), repositories: async()=>({items:[],total:0}), branches: async()=>null, accessTokens: async()=>[], usage: async()=>({repositories:0,storageBytes:0,transferBytes:0,ingressBytes:0}) };
}
