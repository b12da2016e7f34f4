import { TuttiError } from '@tutti/core'
import { isLost } from '@tutti/workspace/log'

/** Reads what something is shown from: what the stores have lost is left out and said, and hides nothing else. */
export interface Parts {
  /** Undefined when it is lost. */
  read<T>(what: string, reading: Promise<T>): Promise<T | undefined>
  /** What was left out, and what to do; empty when all is there. */
  missing(): string
}

export function createParts(isLeftOut: (thrown: unknown) => boolean = isLost): Parts {
  const sentences = new Set<string>()
  return {
    async read(what, reading) {
      try {
        return await reading
      } catch (thrown) {
        if (!isLeftOut(thrown)) throw thrown
        sentences.add(`${what}: ${TuttiError.from(thrown).message}`)
        return undefined
      }
    },
    missing: () => [...sentences].join(' '),
  }
}
