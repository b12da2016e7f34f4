import { TuttiError, type LogId } from '@tutti/core'

const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz'
const form = /^([0-9a-z]{6})-([0-9a-f]{4})-([0-9]{16})-([0-9a-z])$/

/** FNV-1a: spreads well, needs no crypto, and guards against mix-ups, not against attackers. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0
  }
  return value
}

const logTag = (log: LogId): string => hash(log).toString(36).padStart(7, '0').slice(-6)

const checkCharacter = (text: string): string => alphabet[hash(text) % alphabet.length]!

/**
 * The position after record `sequence` of a log, as clients carry it (design §7): log tag, epoch, sequence, check character.
 * Opaque to clients, sorts in log order within one log. The epoch is 0 as long as a log has had one store.
 */
export function encodeOffset(log: LogId, sequence: number): string {
  const text = `${logTag(log)}-0000-${String(sequence).padStart(16, '0')}`
  return `${text}-${checkCharacter(text)}`
}

/**
 * The sequence number that an offset names.
 *
 * @throws TuttiError `invalid_argument` when it is no offset, damaged, or of another log. Whether it lies beyond the end is for
 *   the log to say.
 */
export function decodeOffset(log: LogId, offset: string, field = 'offset_key'): number {
  const match = form.exec(offset)
  const intact = match && checkCharacter(offset.slice(0, -2)) === match[4]
  if (!match || !intact) {
    throw new TuttiError(
      'invalid_argument',
      `${field} is not an offset of Tutti. Use the offset_key of an event, or leave it out to read from the start.`,
      { field },
    )
  }
  if (match[1] !== logTag(log)) {
    throw new TuttiError('invalid_argument', `${field} belongs to another log than ${log}.`, { field, log })
  }
  return Number(match[3])
}
