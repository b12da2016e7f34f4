/**
 * Raw path bytes as a map key, one code unit per byte: equal keys are equal bytes, and the order of keys is the order of bytes.
 * Names need not be UTF-8, so nothing here decodes them.
 */
export const pathKey = (path: Uint8Array): string =>
  Buffer.from(path.buffer, path.byteOffset, path.byteLength).toString('latin1')

/** The bytes of a {@link pathKey}. */
export const pathBytes = (key: string): Buffer => Buffer.from(key, 'latin1')
