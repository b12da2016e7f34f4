import { expect, test } from 'vitest'
import { listSources, readSource } from './sources.ts'

const LONGEST = 600
const MEDIAN = 120
/** Tables of cases may be longer than code. */
const isConformanceTable = (name: string) => /conformance/.test(name)

test('no source file is longer than 600 lines, and half of them are under 120', async () => {
  const names = await listSources()
  expect(names.length).toBeGreaterThan(20)
  const sizes = await Promise.all(
    names.map(async (name) => ({ name, lines: ((await readSource(name)) ?? '').split('\n').length - 1 })),
  )
  expect(sizes.filter(({ name, lines }) => lines > LONGEST && !isConformanceTable(name))).toEqual([])
  const sorted = sizes.map(({ lines }) => lines).toSorted((a, b) => a - b)
  expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(MEDIAN)
})

test('files are kebab-case and none is called utils', async () => {
  const names = (await listSources()).map((name) => name.split('/').at(-1) ?? '')
  expect(
    names.filter((name) => !/^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*\.(ts|mts|mjs|tsx)$/.test(name)),
  ).toEqual([])
  expect(names.filter((name) => /^(utils?|helpers?|misc)\./.test(name))).toEqual([])
})
