// accepted
export const OBJECT_ID_BYTES = 20;
export const OBJECT_ID = /^[0-9a-f]{40}$/;
