import type { TurnOutcome } from './port.ts'

/** A turn whose program has ended, and how. */
export interface EndedTurn {
  readonly turnId: string
  readonly outcome: TurnOutcome
  /** What its program was told in front of the prompt. */
  readonly notice?: string
}

export function encodeEndedTurn(ended: EndedTurn): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ version: 1, ...ended }))
}

/** Undefined for a version that is not known: then the program is started again, as if it had not ended. */
export function decodeEndedTurn(bytes: Uint8Array): EndedTurn | undefined {
  const { version, ...ended } = JSON.parse(new TextDecoder().decode(bytes)) as EndedTurn & {
    readonly version: number
  }
  return version === 1 ? ended : undefined
}
