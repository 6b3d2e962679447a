// Logs on, buys 5 SLUSD at 1.01 or better, prints what comes of it, logs out.
//
//   g++ -std=c++14 -o quickstart quickfix.cpp -lquickfix -lpthread
//   ./quickstart quickfix-cpp.cfg

#include <quickfix/Application.h>
#include <quickfix/FileStore.h>
#include <quickfix/Session.h>
#include <quickfix/SocketInitiator.h>
#include <quickfix/fix44/NewOrderSingle.h>

#include <future>
#include <iostream>

class Quickstart : public FIX::NullApplication {
 public:
  std::promise<void> done;

 private:
  void onLogon(const FIX::SessionID& session) override {
    FIX44::NewOrderSingle order(FIX::ClOrdID("quickstart-" + std::to_string(time(nullptr))), FIX::Side('1'),
                                FIX::TransactTime(), FIX::OrdType('2'));
    order.setField(FIX::Symbol("SLUSD/USDC"));
    order.setField(38, "5");
    order.setField(44, "1.01");
    order.setField(59, "3");  // immediate or cancel
    FIX::Session::sendToTarget(order, session);
  }

  void toAdmin(FIX::Message& message, const FIX::SessionID&) override {
    if (message.getHeader().getField(35) != "A") return;
    message.setField(553, "GUEST");
    message.setField(554, "demo");
    if (message.getHeader().getField(34) == "1") message.setField(141, "Y");
  }

  void fromApp(const FIX::Message& message, const FIX::SessionID&) throw(
      FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue, FIX::UnsupportedMessageType) override {
    if (message.getHeader().getField(35) != "8") return;
    std::cout << "ExecType " << message.getField(150) << " OrdStatus " << message.getField(39) << " CumQty "
              << message.getField(14) << " AvgPx " << message.getField(6) << std::endl;
    const std::string status = message.getField(39);
    if (status != "0" && status != "1" && !over_) {  // neither new nor partially filled
      over_ = true;
      done.set_value();
    }
  }

  bool over_ = false;
};

int main(int argc, char** argv) {
  FIX::SessionSettings settings(argc > 1 ? argv[1] : "quickfix-cpp.cfg");
  FIX::FileStoreFactory store(settings);
  Quickstart application;
  FIX::SocketInitiator initiator(application, store, settings);
  initiator.start();
  application.done.get_future().wait();
  initiator.stop();
  return 0;
}
