import { expect, test } from 'vitest'
import { checkBranch, checkRefName } from './ref-name.ts'

const refused = (field: string) => expect.objectContaining({ code: 'invalid_argument', detail: { field } })

test('a branch has a short name of its own', () => {
  expect(checkBranch('fix/login')).toBe('fix/login')
  for (const name of ['HEAD', 'refs/heads/foo', 'refs/tutti/x', 'a.lock', 'a.lock/b', '']) {
    expect(() => checkBranch(name, 'spec.branch'), name).toThrow(refused('spec.branch'))
  }
})

test('a name fits into a file name of every disk, in any script', () => {
  for (const letter of ['y', 'é', '日']) {
    const fits = letter.repeat(Math.floor(200 / new TextEncoder().encode(letter).length))
    expect(checkRefName(fits, 'ref')).toBe(fits)
    expect(() => checkRefName(fits + letter, 'ref')).toThrow(refused('ref'))
  }
})
