import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  agentId,
  agentWorkflowId,
  ensembleId,
  ensembleWorkflowId,
  isAgentId,
  isBlobId,
  isEnsembleId,
  mirrorRefs,
  uuidV7,
} from './ids.ts'

const anyTime = fc.integer({ min: 0, max: 2 ** 48 - 1 })
const anyRandom = fc.uint8Array({ minLength: 10, maxLength: 16 })

test('an id has the form of RFC 9562, version 7, and carries its time', () => {
  fc.assert(
    fc.property(anyTime, anyRandom, (time, random) => {
      const uuid = uuidV7(time, random)
      expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16)).toBe(time)
      expect(isAgentId(agentId(time, random))).toBe(true)
      expect(isEnsembleId(ensembleId(time, random))).toBe(true)
    }),
  )
})

test('ids sort as text by the time they were made', () => {
  fc.assert(
    fc.property(anyTime, anyTime, anyRandom, anyRandom, (left, right, a, b) => {
      fc.pre(left < right)
      expect(uuidV7(left, a) < uuidV7(right, b)).toBe(true)
    }),
  )
})

test('the random part stays as it was given, apart from version and variant', () => {
  expect(uuidV7(0x0123456789ab, new Uint8Array(10).fill(0xff))).toBe('01234567-89ab-7fff-bfff-ffffffffffff')
  expect(uuidV7(0, new Uint8Array(10))).toBe('00000000-0000-7000-8000-000000000000')
})

const id = '01890000-0000-7000-8000-000000000000'
test.for([
  `bc-${id}\n`,
  ` bc-${id}`,
  `BC-${id}`,
  `bc-${id.toUpperCase().replaceAll('0', 'A')}`,
  `bc-${id.replace('-7', '-4')}`,
  `bc-${id.replace('-8', '-c')}`,
  `en-${id}`,
  id,
  'bc-',
  '',
])('%j is no agent id', (text) => {
  expect(isAgentId(text)).toBe(false)
})

test('blob ids are lower-case sha256', () => {
  expect(isBlobId(`sha256_${'0a'.repeat(32)}`)).toBe(true)
  for (const bad of [
    `sha256_${'0A'.repeat(32)}`,
    `sha256_${'0'.repeat(63)}`,
    `sha256_${'0'.repeat(65)}`,
    `sha1_${'0'.repeat(64)}`,
    `sha256_${'0'.repeat(64)}\n`,
  ])
    expect(isBlobId(bad)).toBe(false)
})

test('names of workflows and refs', () => {
  expect(agentWorkflowId(`bc-${id}`)).toBe(`agent/bc-${id}`)
  expect(ensembleWorkflowId(`en-${id}`)).toBe(`ensemble/en-${id}`)
  expect(mirrorRefs.checkpoint(`bc-${id}`)).toBe(`refs/tutti/agents/bc-${id}/checkpoint`)
  expect(mirrorRefs.base(`en-${id}`)).toBe(`refs/tutti/base/en-${id}`)
  expect(mirrorRefs.synthesis(`en-${id}`)).toBe(`refs/tutti/ensembles/en-${id}/synthesis`)
})
