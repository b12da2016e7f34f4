import { TuttiError } from '@tutti/core'
import { merge } from './merge.ts'
import { pick } from './pick.ts'
import type { SynthesisStrategy } from './port.ts'

/** All strategies, by name. */
export const strategies: ReadonlyMap<string, SynthesisStrategy> = new Map(
  [pick, merge].map((strategy) => [strategy.name, strategy]),
)

/** @throws TuttiError `invalid_argument` that names those there are. */
export function findStrategy(name: string): SynthesisStrategy {
  const strategy = strategies.get(name)
  if (strategy) return strategy
  const known = [...strategies.keys()].join(', ')
  throw new TuttiError(
    'invalid_argument',
    `There is no strategy ${JSON.stringify(name)}; choose one of: ${known}.`,
    {
      field: 'strategy',
    },
  )
}
