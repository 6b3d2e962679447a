// An independent FIX 4.4 client: QuickFIX C++ with its stock dictionary and
// validation on. It trades through sessions of a gateway, breaks them, and exits
// 0 only when every expectation held. It prints each step.
//
//   trader HOST PORT DICTIONARY FOLDER TARGET MAKER COPY TAKER PASSWORD SYMBOL LIFE
//
// MAKER and TAKER are SenderCompIDs and Usernames of two participants, COPY is
// another session of the maker's; FOLDER is where QuickFIX keeps its stores. The
// gateway must be fresh: the book of SYMBOL, which has six decimals of price and
// of quantity, is empty. LIFE is what becomes of a claim: "settled" has the caller
// pay it, who reads the line "pay " and the transaction, and answers with the
// payment's signature in a line; with "unavailable" there is no chain.

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include <quickfix/fix44/QuoteRequest.h>

#include "line.h"

namespace {

int steps = 0;

void step(const std::string& text) { std::cout << "step " << ++steps << ": " << text << std::endl; }

// newID returns a ClOrdID that no run has used.
std::string newID() {
  static int count = 0;
  return "cpp-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

// Book is the market of one symbol as W and X tell it.
struct Book {
  std::map<std::string, std::string> sides[2];  // quantity by price; bids, offers
  int trades = 0;

  void snapshot(const FIX::Message& message);
  void increment(const FIX::Message& message);
  bool operator==(const Book& other) const {
    return sides[0] == other.sides[0] && sides[1] == other.sides[1];
  }
};

void Book::snapshot(const FIX::Message& message) {
  sides[0].clear();
  sides[1].clear();
  for (int i = 1; i <= std::stoi(field(message, 268)); ++i) {
    FIX::Group entry(268, 269);
    message.getGroup(i, entry);
    const std::string kind = field(entry, 269);
    if (kind == "2") continue;
    if (!sides[kind == "1"].emplace(field(entry, 270), field(entry, 271)).second) {
      throw Failure("a snapshot names the price " + field(entry, 270) + " twice");
    }
  }
}

// increment applies an X and holds it to the book: what is new was not there,
// what changes or goes was.
void Book::increment(const FIX::Message& message) {
  for (int i = 1; i <= std::stoi(field(message, 268)); ++i) {
    FIX::Group entry(268, 279);
    message.getGroup(i, entry);
    const std::string action = field(entry, 279), price = field(entry, 270);
    if (field(entry, 269) == "2") {
      ++trades;
      continue;
    }
    auto& side = sides[field(entry, 269) == "1"];
    const bool there = side.count(price) > 0;
    if (there == (action == "0")) throw Failure("MDUpdateAction " + action + " does not fit the level " + price);
    if (action == "2") {
      side.erase(price);
    } else {
      side[price] = field(entry, 271);
    }
  }
}

// Trader is the story; its steps follow each other.
class Trader {
 public:
  Trader(const Settings& maker, const Settings& copy, const Settings& taker, std::string symbol, std::string life)
      : maker_(maker, {{8013, "N"}}),
        copy_(copy, {{9406, "Y"}}),
        taker_(taker, {}),
        symbol_(std::move(symbol)),
        life_(std::move(life)) {}

  void run();
  std::string tape() { return maker_.tape() + copy_.tape() + taker_.tape(); }

 private:
  void logOn();
  void instruments();
  void quote();
  void claim();
  void pay(const FIX::Message& claim, const FIX::Message& package);
  void refuse();
  void trade();
  void change();
  void massCancel();
  void subscribe();
  void followMarket();
  void repeat();
  void gapFromGateway();
  void gapFromUs();
  void missedFill();
  void dropCopy();
  void cancelOnDisconnect();
  void logOut();

  std::string order(Line& line, const char* side, const char* qty, const char* price, const char* tif = "1");
  std::string rest(Line& line, const char* side, const char* qty, const char* price);
  void cancel(Line& line, const std::string& id, const char* side);
  FIX::Message request(const char* type, const std::string& id);
  FIX::Message ask(const std::string& id, const char* dollars);

  Line maker_, copy_, taker_;
  const std::string symbol_, life_;
  Book book_;
};

// order sends a limit order and returns its ClOrdID.
std::string Trader::order(Line& line, const char* side, const char* qty, const char* price, const char* tif) {
  const std::string id = newID();
  line.send("D", {{11, id}, {55, symbol_}, {54, side}, {38, qty}, {40, "2"}, {44, price}, {59, tif}});
  return id;
}

// rest sends an order that does not trade and waits for its acknowledgement.
std::string Trader::rest(Line& line, const char* side, const char* qty, const char* price) {
  const std::string id = order(line, side, qty, price);
  line.report("8", {{11, id}, {150, "0"}, {39, "0"}, {37, "*"}, {17, "*"}, {55, symbol_}, {54, side},
                    {38, qty}, {44, price}, {59, "1"}, {151, qty}, {14, "0.000000"}, {6, "0"}});
  return id;
}

void Trader::cancel(Line& line, const std::string& id, const char* side) {
  const std::string f = newID();
  line.send("F", {{11, f}, {41, id}, {55, symbol_}, {54, side}});
  line.report("8", {{11, f}, {41, id}, {150, "4"}, {39, "4"}, {151, "0.000000"}});
}

void Trader::logOn() {
  step("a wrong password is answered by a Logout with a text, after a delay");
  const std::string text = taker_.refusedWith("not the password");
  if (text.find("LOGON_REFUSED") != 0) throw Failure("the Logout's text is '" + text + "'");
  step("two participants log on with 553 and 554, also after a refusal");
  maker_.connect();
  taker_.connect();
}

void Trader::instruments() {
  step("the instruments (x) have the symbol, and it trades (e)");
  FIX::Message x;
  x.getHeader().setField(35, "x");
  x.setField(320, "list");
  x.setField(559, "4");
  maker_.send(x);
  const FIX::Message y = maker_.report("y", {{320, "list"}, {560, "0"}, {146, "*"}});
  bool there = false;
  for (int i = 1; i <= std::stoi(field(y, 146)); ++i) {
    FIX::Group entry(146, 55);
    y.getGroup(i, entry);
    there = there || (field(entry, 55) == symbol_ && field(entry, 561) == "0.000001");
  }
  if (!there) throw Failure("the list has no " + symbol_ + ": " + y.toString());
  FIX::Message e;
  e.getHeader().setField(35, "e");
  e.setField(324, "status");
  e.setField(263, "0");
  e.setField(55, symbol_);
  maker_.send(e);
  maker_.report("f", {{324, "status"}, {55, symbol_}, {325, "N"}, {326, "17"}});
}

// ask makes an R for a fill of so many dollars, paid in USDC.
FIX::Message Trader::ask(const std::string& id, const char* dollars) {
  FIX::Message r;
  r.getHeader().setField(35, "R");
  r.setField(131, id);
  FIX44::QuoteRequest::NoRelatedSym g;  // it has the dictionary's order
  g.setField(55, symbol_);
  g.setField(54, "1");
  g.setField(152, dollars);
  g.setField(15, "USDC");
  r.addGroup(g);
  return r;
}

void Trader::quote() {
  step("the desk quotes (R, S), refuses a size off its ladder (AG), and is told that we pass (AJ, AI)");
  FIX::Message r = ask("off-ladder", "1001");
  maker_.send(r);
  const FIX::Message no = maker_.report("AG", {{131, "off-ladder"}, {658, "99"}, {58, "*"}});
  if (field(no, 58).find("INVALID_FIELD") != 0) throw Failure("text is " + field(no, 58));
  r = ask("passed", "1000");
  maker_.send(r);
  const FIX::Message s = maker_.report("S", {{131, "passed"}, {117, "*"}, {537, "1"}, {133, "*"}, {135, "*"}, {62, "*"}});
  maker_.send("AJ", {{693, "pass"}, {117, field(s, 117)}, {694, "6"}, {55, symbol_}});
  maker_.report("AI", {{117, field(s, 117)}, {297, "11"}});
}

void Trader::claim() {
  step("a quote is taken (D with 40=D): " + life_);
  FIX::Message r = ask("taken", "1000");
  maker_.send(r);
  const std::string quoted = field(maker_.report("S", {{131, "taken"}, {117, "*"}}), 117);
  const std::string id = newID();
  const Fields d = {{11, id}, {40, "D"}, {117, quoted}, {55, symbol_}, {54, "1"}, {152, "1000"}};
  maker_.send("D", d);
  if (life_ != "settled") {
    const FIX::Message no = maker_.report("8", {{11, id}, {37, "NONE"}, {150, "8"}, {39, "8"}, {103, "*"}});
    if (field(no, 58).find("CHAIN_UNAVAILABLE") != 0) throw Failure("text is " + field(no, 58));
    return;
  }
  const FIX::Message claim =
      maker_.report("8", {{11, id}, {37, "*"}, {150, "A"}, {39, "A"}, {126, "*"}, {58, "AWAIT_PAYMENT"}});
  pay(claim, maker_.report("B", {{148, "CLAIM " + field(claim, 37)}, {95, "*"}, {96, "*"}}));
}

// pay has the caller pay, reports it, and sees the claim settled. The answer to
// the report may come before or after what the desk says of the claim.
void Trader::pay(const FIX::Message& claim, const FIX::Message& package) {
  std::cout << "pay " << field(package, 96) << std::endl;
  std::string signature;
  if (!std::getline(std::cin, signature)) throw Failure("nobody pays");
  FIX::Message paid;
  paid.getHeader().setField(35, "AE");
  const Fields fields = {{571, "paid"}, {572, field(claim, 37)}, {818, signature},        {570, "N"},
                         {55, symbol_}, {32, field(claim, 38)},  {31, field(claim, 44)}, {75, "20260101"}};
  for (const auto& f : fields) paid.setField(f.first, f.second);
  paid.setField(FIX::TransactTime());
  FIX::Group side(552, 54);
  side.setField(54, "1");
  side.setField(37, field(claim, 37));
  paid.addGroup(side);
  maker_.send(paid);
  std::string came;
  for (int i = 0; i < 4; ++i) {
    const FIX::Message m = maker_.next();
    const std::string type = field(m.getHeader(), 35);
    came += type + field(m, 150) + " ";
    if (type == "AR") expect(m, {{571, "paid"}, {939, "0"}});
    if (type == "8" && field(m, 150) == "0") expect(m, {{37, field(claim, 37)}, {39, "0"}, {58, "PAID"}});
    if (type == "8" && field(m, 150) == "F") {
      expect(m, {{37, field(claim, 37)}, {39, "2"}, {32, field(claim, 38)}, {31, field(claim, 44)}, {151, "0.000000"}});
    }
  }
  for (const char* want : {"AR", "80 ", "8F ", "AEF "}) {
    if (came.find(want) == std::string::npos) throw Failure("of the payment came " + came);
  }
}

void Trader::refuse() {
  step("orders are refused with a code and the value: symbol, tick, quantity");
  std::string id = newID();
  maker_.send("D", {{11, id}, {55, "NO/SUCH"}, {54, "1"}, {38, "1"}, {40, "2"}, {44, "1"}, {59, "1"}});
  FIX::Message m = maker_.report("8", {{11, id}, {37, "NONE"}, {150, "8"}, {39, "8"}, {103, "1"}, {58, "*"}});
  if (field(m, 58).find("UNKNOWN_SYMBOL") != 0) throw Failure("text is " + field(m, 58));
  id = order(maker_, "1", "1", "1.0000001");
  m = maker_.report("8", {{11, id}, {150, "8"}, {39, "8"}, {58, "*"}});
  if (field(m, 58).find("1.0000001") == std::string::npos) throw Failure("text is " + field(m, 58));
  id = order(maker_, "1", "99999999", "1");
  m = maker_.report("8", {{11, id}, {150, "8"}, {39, "8"}, {103, "3"}, {58, "*"}});
  if (field(m, 58).find("99999999") == std::string::npos) throw Failure("text is " + field(m, 58));
  id = newID();
  maker_.send("F", {{11, id}, {41, "never-sent"}, {55, symbol_}, {54, "1"}});
  maker_.report("9", {{11, id}, {41, "never-sent"}, {37, "NONE"}, {39, "8"}, {434, "1"}, {102, "1"}, {58, "*"}});
}

void Trader::trade() {
  step("a limit order rests, is filled in part, then wholly; both sides hear of it");
  const std::string sell = rest(maker_, "2", "100.000000", "1.010000");
  const std::string first = order(taker_, "1", "40", "1.01");
  taker_.report("8", {{11, first}, {150, "0"}, {39, "0"}, {151, "40.000000"}});
  taker_.report("8", {{11, first}, {150, "F"}, {39, "2"}, {32, "40.000000"}, {31, "1.010000"},
                      {151, "0.000000"}, {14, "40.000000"}, {6, "1.010000"}});
  maker_.report("8", {{11, sell}, {150, "F"}, {39, "1"}, {32, "40.000000"}, {31, "1.010000"},
                      {151, "60.000000"}, {14, "40.000000"}, {6, "1.010000"}});
  // A better limit trades at the resting price; the rest of an IOC is cancelled.
  const std::string second = order(taker_, "1", "90", "1.05", "3");
  taker_.report("8", {{11, second}, {150, "0"}, {39, "0"}, {59, "3"}});
  taker_.report("8", {{11, second}, {150, "F"}, {39, "1"}, {32, "60.000000"}, {31, "1.010000"}, {151, "30.000000"}});
  taker_.report("8", {{11, second}, {150, "4"}, {39, "4"}, {151, "0.000000"}, {14, "60.000000"}, {58, "*"}});
  maker_.report("8", {{11, sell}, {150, "F"}, {39, "2"}, {151, "0.000000"}, {14, "100.000000"}});
}

void Trader::change() {
  step("an order is amended (G), asked for (H) and cancelled (F)");
  const std::string id = rest(maker_, "1", "50.000000", "0.990000");
  const std::string g = newID();
  maker_.send("G", {{11, g}, {41, id}, {55, symbol_}, {54, "1"}, {38, "30"}, {40, "2"}, {44, "0.98"}, {59, "1"}});
  maker_.report("8", {{11, g}, {41, id}, {150, "5"}, {39, "0"}, {38, "30.000000"}, {44, "0.980000"}, {151, "30.000000"}});
  maker_.send("H", {{11, g}, {55, symbol_}, {54, "1"}});
  maker_.report("8", {{11, g}, {150, "I"}, {39, "0"}, {38, "30.000000"}, {44, "0.980000"}});
  cancel(maker_, g, "1");
  step("what has ended cannot be cancelled again (9)");
  const std::string f = newID();
  maker_.send("F", {{11, f}, {41, g}, {55, symbol_}, {54, "1"}});
  maker_.report("9", {{11, f}, {41, g}, {39, "4"}, {434, "1"}, {102, "0"}, {58, "*"}});
}

void Trader::massCancel() {
  step("a mass cancel (q) ends all orders of a participant on the symbol");
  const std::string a = rest(maker_, "1", "10.000000", "0.970000");
  const std::string b = rest(maker_, "2", "10.000000", "1.030000");
  const std::string other = rest(taker_, "1", "10.000000", "0.960000");
  const std::string q = newID();
  maker_.send("q", {{11, q}, {530, "1"}, {55, symbol_}});
  std::string ended;
  for (int i = 0; i < 2; ++i) ended += field(maker_.report("8", {{150, "4"}, {39, "4"}, {58, "*"}}), 11) + " ";
  if (ended.find(a) == std::string::npos || ended.find(b) == std::string::npos) throw Failure("ended were " + ended);
  maker_.report("r", {{11, q}, {37, "*"}, {530, "1"}, {531, "1"}, {533, "2"}, {55, symbol_}});
  taker_.quiet("the other participant keeps its orders");
  cancel(taker_, other, "1");
}

// request makes a V for bids, offers and trades of the symbol.
FIX::Message Trader::request(const char* type, const std::string& id) {
  FIX::Message v;
  v.getHeader().setField(35, "V");
  v.setField(262, id);
  v.setField(263, type);
  v.setField(264, "0");
  v.setField(265, "1");
  for (const char* kind : {"0", "1", "2"}) {
    FIX::Group g(267, 269);
    g.setField(269, kind);
    v.addGroup(g);
  }
  FIX::Group g(146, 55);
  g.setField(55, symbol_);
  v.addGroup(g);
  return v;
}

void Trader::subscribe() {
  step("market data (V) begins with a snapshot (W); a second use of the MDReqID is refused (Y)");
  const std::string id = rest(maker_, "1", "5.000000", "0.950000");
  FIX::Message v = request("1", "md-1");
  taker_.send(v);
  const FIX::Message w = taker_.market();
  expect(w, {{35, "W"}, {262, "md-1"}, {55, symbol_}});
  book_.snapshot(w);
  // The order's report may be here before market data has it: the snapshot is of
  // the book with it or without it, and then an increment brings it.
  Book want;
  want.sides[0] = {{"0.950000", "5.000000"}};
  while (!(book_ == want)) {
    const FIX::Message x = taker_.market();  // fails when no more come
    expect(x, {{35, "X"}, {262, "md-1"}});
    book_.increment(x);
  }
  v = request("1", "md-1");
  taker_.send(v);
  expect(taker_.market(), {{35, "Y"}, {262, "md-1"}, {281, "1"}, {58, "*"}});
  cancel(maker_, id, "1");
}

void Trader::followMarket() {
  step("increments (X) rebuild the book: levels come, change and go, trades are told");
  std::vector<std::string> bids;
  const char* prices[] = {"0.990000", "0.980000", "0.970000", "0.960000", "0.950000"};
  for (const char* price : prices) bids.push_back(rest(maker_, "1", "10.000000", price));
  const std::string joined = rest(maker_, "1", "2.500000", "0.980000");
  cancel(maker_, bids[2], "1");
  const int tradesBefore = book_.trades;
  order(taker_, "2", "12", "0.98", "3");
  taker_.report("8", {{150, "0"}});
  taker_.report("8", {{150, "F"}, {31, "0.990000"}, {32, "10.000000"}});
  taker_.report("8", {{150, "F"}, {31, "0.980000"}, {32, "2.000000"}, {39, "2"}, {6, "0.988333333333"}});
  maker_.report("8", {{11, bids[0]}, {150, "F"}, {39, "2"}});
  maker_.report("8", {{11, bids[1]}, {150, "F"}, {39, "1"}, {151, "8.000000"}});
  Book want;
  want.sides[0] = {{"0.980000", "10.500000"}, {"0.960000", "10.000000"}, {"0.950000", "10.000000"}};
  while (!(book_ == want) || book_.trades < tradesBefore + 2) {
    const FIX::Message x = taker_.market();  // fails when no more come
    expect(x, {{35, "X"}, {262, "md-1"}});
    book_.increment(x);
  }
  FIX::Message once = request("0", "md-2");
  taker_.send(once);
  const FIX::Message w = taker_.market();
  expect(w, {{35, "W"}, {262, "md-2"}});
  Book fresh;
  fresh.snapshot(w);
  if (!(fresh == book_)) throw Failure("a fresh snapshot differs from the rebuilt book: " + w.toString());
  FIX::Message end = request("2", "md-1");
  taker_.send(end);
  const std::string q = newID();
  maker_.send("q", {{11, q}, {530, "7"}});
  for (int i = 0; i < 4; ++i) maker_.report("8", {{150, "4"}});
  maker_.report("r", {{11, q}, {530, "7"}, {531, "7"}, {533, "4"}});
}

void Trader::repeat() {
  step("the same order again (97=Y, and without) gets its first report again and is not entered twice");
  const std::string id = rest(maker_, "1", "7.000000", "0.940000");
  const Fields d = {{11, id}, {55, symbol_}, {54, "1"}, {38, "7"}, {40, "2"}, {44, "0.94"}, {59, "1"}};
  const size_t before = maker_.executions();
  maker_.send("D", d, true);
  maker_.report("8", {{97, "Y"}, {11, id}, {150, "0"}, {39, "0"}});
  maker_.send("D", d);
  maker_.report("8", {{97, "Y"}, {11, id}, {150, "0"}, {39, "0"}});
  if (maker_.executions() != before) throw Failure("a repeated order made a new ExecID");
  cancel(maker_, id, "1");
  maker_.quiet("there is one order only");
}

void Trader::gapFromGateway() {
  step("a gap in what we received: ResendRequest, the reports again with PossDup, gap fills between");
  const std::string id = rest(maker_, "1", "3.000000", "0.930000");
  cancel(maker_, id, "1");
  maker_.forget();
  const size_t before = maker_.executions();
  maker_.loseIncoming(2);
  const std::string next = order(maker_, "1", "3", "0.93");
  maker_.report("8", {{43, "Y"}, {11, id}, {150, "0"}, {122, "*"}});
  maker_.report("8", {{43, "Y"}, {41, id}, {150, "4"}});
  maker_.report("8", {{11, next}, {150, "0"}});
  cancel(maker_, next, "1");
  if (maker_.executions() != before + 2) throw Failure("the resend made new ExecIDs");
}

void Trader::gapFromUs() {
  step("a gap in what we send: the gateway asks for it, takes our gap fill, and takes the order once");
  maker_.forget();
  maker_.skipSender(5);
  const std::string id = order(maker_, "1", "3", "0.92");
  const FIX::Message asked = maker_.session("2");
  expect(asked, {{7, "*"}, {16, "*"}});
  maker_.report("8", {{11, id}, {150, "0"}});
  maker_.quiet("the order is taken once");
  cancel(maker_, id, "1");
}

void Trader::missedFill() {
  step("the maker's line breaks; its order (8013=N) trades; reconnected with continued numbers it gets the fill");
  const std::string id = rest(maker_, "2", "20.000000", "1.020000");
  const int sender = maker_.nextSender();
  maker_.cut();
  const std::string buy = order(taker_, "1", "5", "1.02");
  taker_.report("8", {{11, buy}, {150, "0"}});
  taker_.report("8", {{11, buy}, {150, "F"}, {39, "2"}, {32, "5.000000"}, {31, "1.020000"}});
  maker_.connect();
  maker_.report("8", {{11, id}, {150, "F"}, {39, "1"}, {32, "5.000000"}, {151, "15.000000"}, {43, "Y"}});
  if (maker_.nextSender() <= sender) throw Failure("our numbers began anew");
  cancel(maker_, id, "2");
}

void Trader::dropCopy() {
  step("another session of the maker gets a copy (AE) of each fill, also of one that it has missed");
  copy_.connect();
  const Fields fill = {{571, "*"}, {570, "N"}, {150, "F"}, {17, "*"}, {55, symbol_}, {32, "2.000000"}, {31, "1.040000"}, {552, "1"}};
  const std::string id = rest(maker_, "2", "6.000000", "1.040000");
  for (bool away : {false, true}) {
    if (away) copy_.cut();
    const std::string buy = order(taker_, "1", "2", "1.04", "3");
    taker_.report("8", {{11, buy}, {150, "0"}});
    taker_.report("8", {{11, buy}, {150, "F"}, {39, "2"}});
    const FIX::Message report = maker_.report("8", {{11, id}, {150, "F"}, {39, "1"}});
    if (away) copy_.connect();
    const FIX::Message copy = copy_.report("AE", fill);
    expect(copy, {{17, field(report, 17)}});
    if (away) expect(copy, {{43, "Y"}});
    FIX::Group side(552, 54);
    copy.getGroup(1, side);
    expect(side, {{54, "2"}, {37, field(report, 37)}, {11, id}});
  }
  copy_.leave();
  cancel(maker_, id, "2");
}

void Trader::cancelOnDisconnect() {
  step("the taker's line breaks (no 8013): its order is cancelled, and it hears so when it is back");
  const std::string id = rest(taker_, "1", "9.000000", "0.910000");
  taker_.cut();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const std::string sell = order(maker_, "2", "9", "0.91", "3");
  maker_.report("8", {{11, sell}, {150, "0"}});
  maker_.report("8", {{11, sell}, {150, "4"}, {14, "0.000000"}});
  taker_.connect();
  taker_.report("8", {{11, id}, {150, "4"}, {39, "4"}, {58, "cancel_on_disconnect"}});
}

void Trader::logOut() {
  step("both log out, come back with continued numbers, and the gateway knows their orders");
  const std::string id = rest(maker_, "1", "4.000000", "0.900000");
  const int sender = maker_.nextSender(), target = maker_.nextTarget();
  maker_.leave();
  taker_.leave();
  maker_.connect();
  taker_.connect();
  if (maker_.nextSender() <= sender || maker_.nextTarget() <= target) throw Failure("the numbers began anew");
  maker_.send("H", {{11, id}, {55, symbol_}, {54, "1"}});
  maker_.report("8", {{11, id}, {150, "I"}, {39, "0"}, {151, "4.000000"}});
  cancel(maker_, id, "1");
  maker_.quiet("the day is over");
  taker_.quiet("the day is over");
  maker_.leave();
  taker_.leave();
}

void Trader::run() {
  logOn();
  instruments();
  quote();
  claim();
  refuse();
  trade();
  change();
  massCancel();
  subscribe();
  followMarket();
  repeat();
  gapFromGateway();
  gapFromUs();
  missedFill();
  dropCopy();
  cancelOnDisconnect();
  logOut();
  std::cout << "all " << steps << " steps held; " << maker_.executions() + taker_.executions() << " execution reports"
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 12) {
    std::cerr << "usage: trader HOST PORT DICTIONARY FOLDER TARGET MAKER COPY TAKER PASSWORD SYMBOL LIFE" << std::endl;
    return 2;
  }
  const Settings maker{argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], argv[6], argv[9]};
  Settings copy = maker, taker = maker;
  copy.name = argv[7];
  taker.name = taker.username = argv[8];
  Trader trader(maker, copy, taker, argv[10], argv[11]);
  try {
    trader.run();
    return 0;
  } catch (const std::exception& failure) {
    std::cout << trader.tape() << "FAILED in step " << steps << ": " << failure.what() << std::endl;
    return 1;
  }
}
