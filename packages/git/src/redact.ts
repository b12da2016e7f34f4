import { visibleText } from '@tutti/core'

/** git's own words without credentials in addresses, fit to be shown. */
export const redact = (text: string): string =>
  visibleText(text.replaceAll('\r', '\n').replace(/:\/\/[^/@\s]*@/g, '://'))
    .trim()
    .slice(0, 4096)
