import { crc32 } from 'node:zlib'
import type { LogId } from '@tutti/core'

/** Format of the stored records: how their checksum is made and what their columns mean. */
export const recordFormat = 1

export interface ChecksummedRecord {
  readonly sequence: number
  readonly type: string
  readonly body: string
  readonly at: number
  readonly producer: string
  readonly epoch: number
  readonly producerSequence: number
}

/** CRC-32 over the record and its place, so that a damaged or misplaced one is noticed. */
export function recordChecksum(log: LogId, record: ChecksummedRecord): number {
  const { sequence, type, body, at, producer, epoch, producerSequence } = record
  const place = JSON.stringify([recordFormat, log, sequence, type, at, producer, epoch, producerSequence])
  return crc32(body, crc32(place))
}
