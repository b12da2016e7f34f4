import { create, type DescMessage, type Message } from '@bufbuild/protobuf'
import { createValidator } from '@bufbuild/protovalidate'
import { TuttiError } from '@tutti/core'

import { refuseTooLongText } from './too-long-text.ts'

/** The rules of the .proto files. */
export interface RequestRules {
  /** @throws TuttiError `invalid_argument` with the path of the field. */
  check(desc: DescMessage, message: Message): void
  /**
   * Gets the rules of these messages ready, one message at a time, so that calls are answered in between; without it the first call of
   * each method waits for that. Ends early with the signal.
   */
  prepare(descs: Iterable<DescMessage>, signal: AbortSignal): Promise<void>
}

export function createRequestRules(): RequestRules {
  const validator = createValidator()
  return {
    check(desc, message) {
      refuseTooLongText(desc, message)
      const result = validator.validate(desc, message)
      if (result.kind === 'error') throw result.error
      const [violation] = result.kind === 'invalid' ? result.violations : []
      if (!violation) return
      const field = pathText(violation.field)
      const text = field === '' ? `${violation.message}.` : `${field}: ${violation.message}.`
      throw new TuttiError('invalid_argument', text, {
        field: field || (violation.ruleId.split('.').at(-1) ?? ''),
        rule: violation.ruleId,
      })
    },
    async prepare(descs, signal) {
      for (const desc of new Set(descs)) {
        await new Promise((resolve) => setImmediate(resolve))
        if (signal.aborted) return
        // What comes out does not matter: an empty message breaks rules.
        validator.validate(desc, create(desc))
      }
    },
  }
}

type Path = readonly (
  | { readonly kind: string; readonly name?: string }
  | { readonly kind: 'list_sub'; readonly index: number }
  | { readonly kind: 'map_sub'; readonly key: unknown }
)[]

function pathText(path: Path): string {
  return path
    .map((part, index) => {
      if ('index' in part) return `[${part.index}]`
      if ('key' in part) return `[${JSON.stringify(part.key)}]`
      return `${index > 0 ? '.' : ''}${part.name ?? ''}`
    })
    .join('')
}
