import type { AgentId, Attempt } from '@tutti/core'
import { describe, expect, test } from 'vitest'
import type { SynthesisStrategy } from './port.ts'

/** An attempt for tests; by default one that ended well with a change. */
export function attempt(index: number, change: Partial<Attempt> = {}): Attempt {
  const bcId: AgentId = `bc-00000000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`
  const base = '0'.repeat(40)
  const commit = index.toString(16).padStart(40, '1')
  return {
    bcId,
    status: 'IDLE',
    reason: 'completed',
    base,
    commit,
    filesChanged: 1,
    summary: '',
    detail: '',
    ...change,
  }
}

export const failedCheck = { check: { exitCode: 1, tail: '', durationMs: 1 } }
export const passed = { check: { exitCode: 0, tail: '', durationMs: 1 } }

/** What every strategy must do. */
export function testSynthesisStrategyContract(strategy: SynthesisStrategy): void {
  describe(`synthesis strategy: ${strategy.name}`, () => {
    const unchanged = attempt(3, { commit: '0'.repeat(40) })
    const failure = attempt(4, { status: 'ERROR', reason: 'agent_error' })
    const attempts = [attempt(1, passed), attempt(2, failedCheck), unchanged, failure, attempt(5, passed)]
    const members = (request: Parameters<SynthesisStrategy['plan']>[0]) => {
      const { alternatives, additions } = strategy.plan(request)
      return [...alternatives.flat(), ...additions]
    }

    test('gives the same plan for the same request', () => {
      const request = { attempts, equalGroups: [[attempts[0]!.bcId, attempts[4]!.bcId]] }
      expect(strategy.plan(request)).toEqual(strategy.plan(structuredClone(request)))
    })

    test('ENS-01 ENS-07 uses every candidate once and leaves out all others, each with a sentence', () => {
      const request = { attempts, equalGroups: [] }
      expect(members(request).toSorted()).toEqual([1, 2, 5].map((index) => attempt(index).bcId))
      const { leftOut } = strategy.plan(request)
      expect(leftOut.map(({ bcId }) => bcId)).toEqual([unchanged.bcId, failure.bcId])
      for (const { why } of leftOut) expect(why).toMatch(/^[A-Z].+\.$/)
    })

    test('ENS-06 takes equal trees once, the first of them', () => {
      const ids = attempts.map(({ bcId }) => bcId)
      const request = { attempts, equalGroups: [[ids[4]!, ids[0]!]] }
      expect(members(request).toSorted()).toEqual([ids[0], ids[1]])
    })

    test('ENS-08 takes the only candidate', () => {
      const only = attempt(1)
      expect(strategy.plan({ attempts: [only], equalGroups: [] })).toEqual({
        alternatives: [[only.bcId]],
        additions: [],
        leftOut: [],
      })
    })

    test('ENS-07 has nothing to try when nothing changed', () => {
      const plan = strategy.plan({ attempts: [unchanged, failure], equalGroups: [] })
      expect(plan.alternatives).toEqual([])
      expect(plan.additions).toEqual([])
      expect(plan.leftOut).toHaveLength(2)
    })
  })
}
