import { TuttiError } from '@tutti/core'
import type { StackParts } from './parts.ts'

/** The composition root: every adapter is chosen here and nowhere else. */
export function createParts(): StackParts {
  throw new TuttiError(
    'failed_precondition',
    'This build has no server parts; use --address to reach a server elsewhere.',
  )
}
