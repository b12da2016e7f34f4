/** Times in milliseconds, sizes in bytes. */
export interface S3Limits {
  readonly connectMs: number
  readonly inactivityMs: number
  readonly patienceMs: number
  readonly firstPauseMs: number
  readonly longestPauseMs: number
  readonly singlePutBytes: number
  readonly partBytes: number
  readonly parallelParts: number
  /** Small blobs that are stored or read together: so many requests at once. */
  readonly parallelSmall: number
  readonly memoryBytes: number
  readonly lookFirstBytes: number
}

export const defaultS3Limits: S3Limits = {
  // A server that is near answers in one round trip; one that is down must be told from one that is slow.
  connectMs: 5_000,
  // Without a byte in either direction. S3 may take seconds to put a large upload together, and sends spaces meanwhile.
  inactivityMs: 20_000,
  // No new try after this: whoever calls tries again later by itself, and shall hear of a store that is down.
  patienceMs: 30_000,
  firstPauseMs: 200,
  longestPauseMs: 5_000,
  // Above it parts pay off: one that fails is sent again alone.
  singlePutBytes: 16 << 20,
  // At least 5 MiB, says S3. With the number below it bounds what uploads of streams hold in memory.
  partBytes: 8 << 20,
  parallelParts: 4,
  parallelSmall: 16,
  // What a stream may hold before it goes to a temporary file.
  memoryBytes: 1 << 20,
  // From here a question whether the blob is there costs less than sending what may be there.
  lookFirstBytes: 1 << 20,
}
