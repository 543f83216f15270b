// accepted
/** Returns null if there is none. Of course it may also fail. */
export const a = 'refs-moved-meanwhile';
