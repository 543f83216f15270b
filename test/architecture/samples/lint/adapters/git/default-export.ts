// refused: import(no-default-export)
export default function open(): void {}
