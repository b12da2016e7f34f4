import { expect, test } from 'vitest'
import { attempt, failedCheck, passed, testSynthesisStrategyContract } from './contract.ts'
import { findStrategy, strategies } from './strategies.ts'

for (const strategy of strategies.values()) testSynthesisStrategyContract(strategy)

const attempts = [attempt(1, failedCheck), attempt(2, passed), attempt(3), attempt(4, failedCheck)]
const ids = attempts.map(({ bcId }) => bcId)

test('pick tries what passed its own check first, each in the order of the children', () => {
  const { alternatives } = findStrategy('pick').plan({ attempts, equalGroups: [] })
  expect(alternatives).toEqual([[ids[1]], [ids[2]], [ids[0]], [ids[3]]])
})

test('merge folds what passed and adds what failed', () => {
  const plan = findStrategy('merge').plan({ attempts, equalGroups: [] })
  expect(plan.alternatives).toEqual([[ids[1], ids[2]]])
  expect(plan.additions).toEqual([ids[0], ids[3]])
})

test('merge folds all when none passed', () => {
  const failed = attempts.map((one) => ({ ...one, ...failedCheck }))
  const plan = findStrategy('merge').plan({ attempts: failed, equalGroups: [] })
  expect(plan).toMatchObject({ alternatives: [ids], additions: [] })
})

test('an unknown name is refused with the names there are', () => {
  expect(() => findStrategy('octopus')).toThrow(/"octopus"; choose one of: pick, merge/)
})
