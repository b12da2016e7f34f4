import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A small shop in plain JavaScript: three of its four functions are wrong, four of its seven tests fail. No dependencies. */
const files: Readonly<Record<string, string>> = {
  'package.json': `${JSON.stringify({ name: 'little-shop', version: '1.0.0', private: true, type: 'module', scripts: { test: 'node --test' } }, undefined, 2)}\n`,
  'README.md': '# Little shop\n\nPrices, totals and money as text. `npm test` runs the tests.\n',
  'src/parse-price.js': `/** "$1,234.50" → 1234.5 */
export function parsePrice(text) {
  return Number(text.replace('$', ''))
}
`,
  'src/cart-total.js': `/** The total of a cart; \`discount\` is a share, 0.1 for ten percent off. */
export function cartTotal(items, discount = 0) {
  const sum = items.reduce((total, { price, count }) => total + price * count, 0)
  return sum + sum * discount
}
`,
  'src/format-money.js': `/** 12.5 → "$12.50", -3 → "-$3.00" */
export function formatMoney(amount) {
  const sign = amount < 0 ? '-' : ''

  const rounded = Math.abs(Math.round(amount))

  return sign + '$' + rounded.toFixed(2)
}
`,
  'src/item-count.js': `/** How many things are in a cart. */
export function itemCount(items) {
  return items.reduce((total, { count }) => total + count, 0)
}
`,
  'test/item-count.test.js': `import assert from 'node:assert/strict'
import test from 'node:test'
import { itemCount } from '../src/item-count.js'

test('two of a kind count twice', () => assert.equal(itemCount([{ count: 2 }, { count: 1 }]), 3))
`,
  'test/parse-price.test.js': `import assert from 'node:assert/strict'
import test from 'node:test'
import { parsePrice } from '../src/parse-price.js'

test('a plain price', () => assert.equal(parsePrice('$12.50'), 12.5))
test('thousands', () => assert.equal(parsePrice('$1,234.50'), 1234.5))
`,
  'test/cart-total.test.js': `import assert from 'node:assert/strict'
import test from 'node:test'
import { cartTotal } from '../src/cart-total.js'

const items = [{ price: 10, count: 3 }, { price: 5, count: 2 }]
test('without a discount', () => assert.equal(cartTotal(items), 40))
test('ten percent off', () => assert.equal(cartTotal(items, 0.1), 36))
`,
  'test/format-money.test.js': `import assert from 'node:assert/strict'
import test from 'node:test'
import { formatMoney } from '../src/format-money.js'

test('cents', () => assert.equal(formatMoney(12.5), '$12.50'))
test('negative amounts', () => assert.equal(formatMoney(-3.25), '-$3.25'))
`,
}

/** Makes the demo's repository with one commit on \`main\`. The folder must not exist yet. */
export async function makeDemoRepository(folder: string, signal: AbortSignal): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  const identity = [
    '-c',
    'user.name=Tutti demo',
    '-c',
    'user.email=demo@localhost',
    '-c',
    'commit.gpgsign=false',
  ]
  for (const args of [
    ['init', '--quiet', '--initial-branch=main'],
    ['add', '--all'],
    [...identity, '-c', 'core.hooksPath=/dev/null', 'commit', '--quiet', '-m', 'A little shop'],
  ]) {
    await run('git', args, { cwd: folder, signal })
  }
}
