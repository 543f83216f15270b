// refused: strata(object-id-length-in-one-place)
export const PARENT_SOURCE = 'parent .{40}';
